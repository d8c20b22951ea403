/* Collecting columns: values are copied once into blocks, which are linked to chains. Combining two
   states links their chains; only the kernel's side copies values into arrays, in threads. */
#include "collect.h"

#include <string.h>

enum { FIRST_ROOM = 16, GROWTH = 4, MAX_ROOM = 1 << 17, MIN_SLAB = 1 << 16, SLAB_SIZES = 12,
       WORTH_A_BLOCK = 1 << 13 };

/* What a block holds of one column. Without data all its values are NULL. */
typedef struct {
    uint8_t *data;
    uint8_t *state;   /* VALID, INVALID or PARTIAL for each row; NULL where all are VALID */
    uint64_t nulls;   /* rows that are not VALID */
    uint64_t *ends;   /* of texts and lists: where each row's bytes end in data */
    uint64_t room;    /* of texts and lists: bytes of data */
} Segment;

enum { INVALID = 0, VALID = 1, PARTIAL = 2 /* a list with NULL among its elements */ };

struct Block {
    Block *next;
    const Layout *layout;
    uint32_t rows, room;
    bool counts;      /* the first column is first_id + row: its values are not kept */
    int64_t first_id;
    uint32_t *starts; /* rows where the first column does not count on */
    uint32_t n_starts, room_starts;
    Segment columns[];
};

/* ---- memory: slabs of powers of two, kept for the next query up to a limit ---- */

typedef struct Slab {
    struct Slab *next;
} Slab;

static Lock slab_lock = LOCK_INIT;
static Slab *free_slabs[SLAB_SIZES];
static uint64_t kept_bytes, max_kept_bytes = (uint64_t)1 << 30;

static int slab_class(size_t size) {
    for (int k = 0; k < SLAB_SIZES; k++)
        if (size == (size_t)MIN_SLAB << k) return k;
    return -1;
}

static void *allocate(size_t size) {
    int k = slab_class(size);
    if (k < 0) return malloc(size);
    lock(&slab_lock);
    Slab *slab = free_slabs[k];
    if (slab) {
        free_slabs[k] = slab->next;
        kept_bytes -= size;
    }
    unlock(&slab_lock);
    return slab ? slab : allocate_aligned(size);
}

static void release(void *memory, size_t size) {
    if (!memory) return;
    int k = slab_class(size);
    if (k < 0) {
        free(memory);
        return;
    }
    lock(&slab_lock);
    bool keep = kept_bytes + size <= max_kept_bytes;
    if (keep) {
        Slab *slab = memory;
        slab->next = free_slabs[k];
        free_slabs[k] = slab;
        kept_bytes += size;
    }
    unlock(&slab_lock);
    if (!keep) free_aligned(memory);
}

/* Keep at most so many bytes of unused memory; returns how many are kept. */
EXPORT uint64_t spatialq_keep(uint64_t bytes) {
    lock(&slab_lock);
    max_kept_bytes = bytes;
    for (int k = SLAB_SIZES - 1; k >= 0; k--)
        while (free_slabs[k] && kept_bytes > bytes) {
            Slab *slab = free_slabs[k];
            free_slabs[k] = slab->next;
            kept_bytes -= (uint64_t)MIN_SLAB << k;
            free_aligned(slab);
        }
    uint64_t kept = kept_bytes;
    unlock(&slab_lock);
    return kept;
}

/* ---- appending ---- */

static idx_t count_valid(const uint64_t *validity, idx_t from, idx_t n) {
    if (!validity) return n;
    idx_t found = 0, row = from, stop = from + n;
    while (row < stop) {
        if (row % 64 == 0 && row + 64 <= stop && validity[row / 64] == UINT64_MAX) {
            found += 64;
            row += 64;
        } else {
            found += is_valid(validity, row++);
        }
    }
    return found;
}

static Block *add_block(const Layout *layout, Chain *chain) {
    uint32_t room = chain->last ? chain->last->room : 0;
    room = room == 0 ? FIRST_ROOM : room < MAX_ROOM ? room * GROWTH : MAX_ROOM;
    Block *block = calloc(1, sizeof(Block) + layout->n_columns * sizeof(Segment));
    if (!block) return NULL;
    block->layout = layout;
    block->room = room;
    if (chain->last) chain->last->next = block;
    else chain->first = block;
    chain->last = block;
    return block;
}

static size_t data_size(const Column *column, const Block *block, const Segment *v) {
    return column->kind == KIND_FIXED ? (size_t)column->width * block->room : v->room;
}

/* Make room for the first value that is not NULL. */
static bool begin(const Column *column, const Block *block, Segment *v) {
    if (v->data) return true;
    if (column->kind == KIND_FIXED) {
        v->data = allocate(data_size(column, block, v));
        if (!v->data) return false;
        memset(v->data, 0, (size_t)column->width * block->rows);
    } else {
        v->ends = calloc(block->room, sizeof(uint64_t));
        v->data = malloc(v->room = 256);
        if (!v->ends || !v->data) return false;
    }
    if (block->rows) v->state = calloc(block->room, 1); /* all INVALID so far */
    return !block->rows || v->state;
}

static bool begin_states(const Block *block, Segment *v) {
    if (v->state) return true;
    v->state = malloc(block->room);
    if (v->state) memset(v->state, VALID, block->rows);
    return v->state != NULL;
}

static bool append_heap(Segment *v, uint64_t used, const void *bytes, uint64_t n) {
    if (used + n > v->room) {
        uint64_t room = v->room;
        while (room < used + n) room *= 2;
        uint8_t *grown = realloc(v->data, room);
        if (!grown) return false;
        v->data = grown;
        v->room = room;
    }
    if (n) memcpy(v->data + used, bytes, n);
    return true;
}

static bool append_column(const Column *column, Block *block, Segment *v, const Values *values,
                          idx_t from, idx_t n) {
    idx_t valid = count_valid(values->validity, from, n);
    idx_t at = block->rows;
    if (valid == 0 && !v->data) {
        v->nulls += n;
        return true;
    }
    if (!begin(column, block, v)) return false;
    if (valid < n && !begin_states(block, v)) return false;
    if (v->state)
        for (idx_t i = 0; i < n; i++) v->state[at + i] = is_valid(values->validity, from + i);
    v->nulls += n - valid;
    if (column->kind == KIND_FIXED) {
        memcpy(v->data + at * column->width,
               (const uint8_t *)values->data + from * column->width, n * column->width);
        return true;
    }
    uint64_t used = at ? v->ends[at - 1] : 0;
    for (idx_t i = 0; i < n; i++) {
        if (is_valid(values->validity, from + i)) {
            const uint8_t *bytes;
            uint64_t size;
            if (column->kind == KIND_TEXT) {
                const String *text = (const String *)values->data + from + i;
                bytes = (const uint8_t *)string_bytes(text);
                size = text->length;
            } else {
                const ListEntry *list = (const ListEntry *)values->data + from + i;
                bytes = (const uint8_t *)values->elements + list->offset * column->width;
                size = list->length * column->width;
                if (count_valid(values->valid_elements, list->offset, list->length) < list->length) {
                    if (!v->state) {
                        if (!begin_states(block, v)) return false;
                        memset(v->state + at, VALID, n);
                    }
                    v->state[at + i] = PARTIAL;
                    v->nulls++;
                }
            }
            if (!append_heap(v, used, bytes, size)) return false;
            used += size;
        }
        v->ends[at + i] = used;
    }
    return true;
}

static int64_t id_at(const Block *block, uint64_t row) {
    if (block->counts) return (int64_t)((uint64_t)block->first_id + row);
    const int64_t *ids = (const int64_t *)block->columns[0].data;
    return ids ? ids[row] : 0;
}

static bool counts_on(const Values *ids, idx_t from, idx_t n) {
    const int64_t *id = (const int64_t *)ids->data + from;
    bool so_far = count_valid(ids->validity, from, n) == n;
    for (idx_t i = 1; so_far && i < n; i++) so_far = id[i] == (int64_t)((uint64_t)id[0] + i);
    return so_far;
}

/* Write the values of a first column that counted until now. */
static bool stop_counting(const Layout *layout, Block *block) {
    Segment *v = &block->columns[0];
    v->data = allocate(data_size(&layout->columns[0], block, v));
    if (!v->data) return false;
    for (uint64_t row = 0; row < block->rows; row++) ((int64_t *)v->data)[row] = id_at(block, row);
    block->counts = false;
    return true;
}

/* Remember where the first column does not count on from one run of rows to the next. */
static bool note_start(Block *block, const Values *ids, idx_t from) {
    if (block->rows && is_valid(ids->validity, from)
        && ((const int64_t *)ids->data)[from]
               == (int64_t)((uint64_t)id_at(block, block->rows - 1) + 1))
        return true;
    if (block->n_starts == block->room_starts) {
        uint32_t room = block->room_starts ? 2 * block->room_starts : 4;
        uint32_t *grown = realloc(block->starts, room * sizeof *grown);
        if (!grown) return false;
        block->starts = grown;
        block->room_starts = room;
    }
    block->starts[block->n_starts++] = block->rows;
    return true;
}

bool append(const Layout *layout, Chain *chain, const Values *values, idx_t from, idx_t n) {
    while (n) {
        Block *block = chain->last;
        if (!block || block->rows == block->room) block = add_block(layout, chain);
        if (!block) return false;
        idx_t k = block->room - block->rows;
        if (k > n) k = n;
        if (layout->is_ordered) {
            int64_t id = ((const int64_t *)values[0].data)[from];
            bool counts = counts_on(&values[0], from, k);
            bool goes_on = block->counts && counts && id == id_at(block, block->rows);
            if (block->counts && counts && !goes_on && block->rows >= WORTH_A_BLOCK) {
                block = add_block(layout, chain); /* a thread goes on with another part of the table */
                if (!block) return false;
                if (k > block->room) k = block->room;
            }
            if (!note_start(block, &values[0], from)) return false;
            if (!block->rows) {
                block->counts = counts;
                block->first_id = id;
            } else if (block->counts && !goes_on && !stop_counting(layout, block)) {
                return false;
            }
        }
        for (int c = block->counts ? 1 : 0; c < layout->n_columns; c++)
            if (!append_column(&layout->columns[c], block, &block->columns[c], &values[c], from, k))
                return false;
        block->rows += (uint32_t)k;
        chain->rows += k;
        from += k;
        n -= k;
    }
    return true;
}

void move_rows(State *to, State *from) {
    to->is_wrong |= from->is_wrong || from->is_taken;
    from->is_taken = true;
    to->differs |= from->differs || (to->request && from->request && strcmp(to->request, from->request));
    if (!to->request) {
        to->request = from->request;
        from->request = NULL;
    }
    for (int p = 0; p < PARTS; p++) {
        Chain *a = &to->parts[p], *b = &from->parts[p];
        if (!b->first) continue;
        if (a->last) a->last->next = b->first;
        else a->first = b->first;
        a->last = b->last;
        a->rows += b->rows;
        memset(b, 0, sizeof *b);
    }
}

static void free_column(const Column *column, const Block *block, Segment *v) {
    if (column->kind == KIND_FIXED) release(v->data, data_size(column, block, v));
    else free(v->data);
    free(v->state);
    free(v->ends);
    memset(v, 0, sizeof *v);
}

void free_state(State *state) {
    free(state->request);
    for (int p = 0; p < PARTS; p++) {
        Block *block = state->parts[p].first;
        while (block) {
            Block *next = block->next;
            for (int c = 0; c < block->layout->n_columns; c++)
                free_column(&block->layout->columns[c], block, &block->columns[c]);
            free(block->starts);
            free(block);
            block = next;
        }
    }
    memset(state, 0, sizeof *state);
}

/* ---- what Python calls, with the number of a state that a finalize handed to it ---- */

typedef struct {
    int64_t first, last; /* values of the first column */
    Block *block;
    uint64_t from, n, to; /* rows in the block; row in the whole */
} Piece;

/* The rows of a part: pieces whose first column counts on from one run of rows to the next. */
typedef struct {
    Piece *pieces;
    uint64_t n;
} Pieces;

typedef struct Collected {
    struct Collected *next;
    int64_t number;
    const Layout *layout;
    State state;
    Pieces parts[PARTS];
} Collected;

static Lock collected_lock = LOCK_INIT;
static Collected *all_collected;
static int64_t last_number;

static int by_first(const void *one, const void *other) {
    const Piece *a = one, *b = other;
    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    return a->n < b->n ? -1 : a->n > b->n;
}

static void add_piece(Pieces *found, Block *block, uint64_t from, uint64_t stop, bool is_ordered) {
    if (stop == from) return;
    int64_t first = is_ordered ? id_at(block, from) : 0, last = is_ordered ? id_at(block, stop - 1) : 0;
    found->pieces[found->n++] = (Piece){first, last, block, from, stop - from, 0};
}

/* Put pieces in ascending order if that makes the whole ascend. A table that does, read by several
   threads, then gives the same rows in the same order as read by one; others stay as they came. */
static bool put_in_order(Pieces *pieces) {
    size_t size = pieces->n * sizeof(Piece);
    Piece *sorted = malloc(size + 1);
    if (!sorted) return false;
    memcpy(sorted, pieces->pieces, size);
    qsort(sorted, pieces->n, sizeof(Piece), by_first);
    bool ascends = true;
    for (uint64_t k = 1; ascends && k < pieces->n; k++) ascends = sorted[k - 1].last < sorted[k].first;
    if (ascends) memcpy(pieces->pieces, sorted, size);
    free(sorted);
    return true;
}

static bool find_pieces(const Layout *layout, const Chain *chain, Pieces *found) {
    uint64_t n = 0;
    for (Block *b = chain->first; b; b = b->next) n += b->n_starts + 1;
    found->pieces = malloc((n + 1) * sizeof(Piece));
    if (!found->pieces) return false;
    for (Block *b = chain->first; b; b = b->next) {
        uint64_t from = 0;
        for (uint32_t s = 0; s < b->n_starts; s++) {
            add_piece(found, b, from, b->starts[s], layout->is_ordered);
            from = b->starts[s];
        }
        add_piece(found, b, from, b->rows, layout->is_ordered);
    }
    if (layout->is_ordered && !put_in_order(found)) return false;
    uint64_t to = 0;
    for (uint64_t k = 0; k < found->n; k++) {
        found->pieces[k].to = to;
        to += found->pieces[k].n;
    }
    return true;
}

static void free_collected(Collected *c) {
    free_state(&c->state);
    for (int p = 0; p < PARTS; p++) free(c->parts[p].pieces);
    free(c);
}

int64_t keep_collected(const Layout *layout, State *state) {
    Collected *c = calloc(1, sizeof *c);
    if (!c) return 0;
    c->layout = layout;
    move_rows(&c->state, state);
    for (int p = 0; p < PARTS; p++)
        if (!find_pieces(layout, &c->state.parts[p], &c->parts[p])) {
            free_collected(c);
            return 0;
        }
    lock(&collected_lock);
    c->number = ++last_number;
    c->next = all_collected;
    all_collected = c;
    unlock(&collected_lock);
    return c->number;
}

static Collected *find_collected(int64_t number) {
    lock(&collected_lock);
    Collected *c = all_collected;
    while (c && c->number != number) c = c->next;
    unlock(&collected_lock);
    return c;
}

/* Free what was collected; a number that is not known is ignored. */
EXPORT void spatialq_free(int64_t number) {
    lock(&collected_lock);
    Collected **at = &all_collected;
    while (*at && (*at)->number != number) at = &(*at)->next;
    Collected *c = *at;
    if (c) *at = c->next;
    unlock(&collected_lock);
    if (c) free_collected(c);
}

void forget_all_collected(void) {
    slab_lock = (Lock)LOCK_INIT;
    collected_lock = (Lock)LOCK_INIT;
    memset(free_slabs, 0, sizeof free_slabs); /* a list of them may be half changed */
    kept_bytes = 0;
    all_collected = NULL;
}

static int by_number(const void *wanted, const void *one) {
    int64_t a = *(const int64_t *)wanted, b = *(const int64_t *)one;
    return (a > b) - (a < b);
}

/* Find what was collected under `numbers`, which ascend; with `take`, all but the first leave the
   list. */
static void find_all(const int64_t *numbers, uint64_t n, bool take, Collected **found) {
    lock(&collected_lock);
    for (Collected **at = &all_collected; *at;) {
        Collected *c = *at;
        const int64_t *place = bsearch(&c->number, numbers, n, sizeof *numbers, by_number);
        if (place) found[place - numbers] = c;
        if (take && place && place > numbers) *at = c->next;
        else at = &c->next;
    }
    unlock(&collected_lock);
}

/* Rows of the first tables of what was collected under `numbers`, which ascend, and what each is
   asked for, as spatialq_request. False if there is no memory. */
EXPORT bool spatialq_describe(const int64_t *numbers, uint64_t n, uint64_t *rows, const char **requests) {
    Collected **found = calloc(n, sizeof *found);
    if (!found) return false;
    find_all(numbers, n, false, found);
    for (uint64_t i = 0; i < n; i++) {
        rows[i] = found[i]->state.parts[0].rows;
        requests[i] = found[i]->state.request;
    }
    free(found);
    return true;
}

/* Join the rows of the first tables of several collected states, in the order of their numbers,
   which ascend: the first number stands for all of them then, and the others are not known any
   more. `starts` gets the row at which each begins, and the end. False if there is no memory: then
   nothing was changed. */
EXPORT bool spatialq_join(const int64_t *numbers, uint64_t n, int64_t *starts) {
    Collected **found = calloc(n, sizeof *found);
    if (!found) return false;
    find_all(numbers, n, false, found);
    uint64_t pieces = 0, rows = 0, k = 0;
    for (uint64_t i = 0; i < n; i++) pieces += found[i]->parts[0].n;
    Piece *all = malloc((pieces + 1) * sizeof *all);
    if (!all) {
        free(found);
        return false;
    }
    find_all(numbers, n, true, found);
    for (uint64_t i = 0; i < n; i++) {
        const Pieces *part = &found[i]->parts[0];
        for (uint64_t j = 0; j < part->n; j++, k++) {
            all[k] = part->pieces[j];
            all[k].to += rows;
        }
        starts[i] = (int64_t)rows;
        rows += found[i]->state.parts[0].rows;
    }
    starts[n] = (int64_t)rows;
    free(found[0]->parts[0].pieces);
    found[0]->parts[0] = (Pieces){all, pieces};
    for (uint64_t i = 1; i < n; i++) {
        move_rows(&found[0]->state, &found[i]->state);
        free_collected(found[i]);
    }
    free(found);
    return true;
}

/* How many states Python has not freed. */
EXPORT int64_t spatialq_count_collected(void) {
    int64_t n = 0;
    lock(&collected_lock);
    for (Collected *c = all_collected; c; c = c->next) n++;
    unlock(&collected_lock);
    return n;
}

/* The aggregate's first argument; NULL if it got no row. */
EXPORT const char *spatialq_request(int64_t number) {
    const Collected *c = find_collected(number);
    return c ? c->state.request : NULL;
}

EXPORT uint64_t spatialq_rows(int64_t number, int part) {
    const Collected *c = find_collected(number);
    return c ? c->state.parts[part].rows : 0;
}

EXPORT uint64_t spatialq_pieces(int64_t number, int part) {
    const Collected *c = find_collected(number);
    return c ? c->parts[part].n : 0;
}

/* Whether the first column is 0, 1, 2 ... */
EXPORT bool spatialq_counts(int64_t number, int part) {
    const Collected *c = find_collected(number);
    if (!c || !c->layout->is_ordered) return false;
    for (uint64_t k = 0; k < c->parts[part].n; k++) {
        const Piece *p = &c->parts[part].pieces[k];
        if (!p->block->counts || p->first != (int64_t)p->to) return false;
    }
    return true;
}

/* How many values of a column are NULL, or lists with NULL among their elements. */
EXPORT uint64_t spatialq_nulls(int64_t number, int part, int column) {
    const Collected *c = find_collected(number);
    uint64_t nulls = 0;
    for (Block *b = c ? c->state.parts[part].first : NULL; b; b = b->next)
        nulls += b->columns[column].nulls;
    return nulls;
}

/* How many bytes all texts or lists of a column have. */
EXPORT uint64_t spatialq_bytes(int64_t number, int part, int column) {
    const Collected *c = find_collected(number);
    uint64_t bytes = 0;
    for (Block *b = c ? c->state.parts[part].first : NULL; b; b = b->next) {
        const Segment *v = &b->columns[column];
        if (v->ends && b->rows) bytes += v->ends[b->rows - 1];
    }
    return bytes;
}

/* Copy the values of pieces [from, stop) into an array of all rows, and, where `states` is not
   NULL, INVALID, VALID or PARTIAL for each. Threads may copy different pieces at once. */
EXPORT void spatialq_copy(int64_t number, int part, int column, uint64_t from, uint64_t stop,
                          uint8_t *values, uint8_t *states) {
    const Collected *c = find_collected(number);
    if (!c) return;
    size_t width = c->layout->columns[column].width;
    for (uint64_t k = from; k < stop; k++) {
        const Piece *p = &c->parts[part].pieces[k];
        const Segment *v = &p->block->columns[column];
        if (column == 0 && p->block->counts) {
            for (uint64_t i = 0; i < p->n; i++)
                ((int64_t *)values)[p->to + i] = (int64_t)((uint64_t)p->first + i);
            if (states) memset(states + p->to, VALID, p->n);
            continue;
        }
        if (v->data) memcpy(values + p->to * width, v->data + p->from * width, p->n * width);
        else memset(values + p->to * width, 0, p->n * width);
        if (!states) continue;
        if (v->state) memcpy(states + p->to, v->state + p->from, p->n);
        else memset(states + p->to, v->data ? VALID : INVALID, p->n);
    }
}

/* Copy texts or lists: all bytes, one after the other; where each row's begin, and the end. */
EXPORT void spatialq_copy_bytes(int64_t number, int part, int column, uint8_t *bytes,
                                int64_t *starts, uint8_t *states) {
    const Collected *c = find_collected(number);
    if (c && c->layout->columns[column].kind == KIND_FIXED) return;
    int64_t used = 0, row = 0;
    for (uint64_t k = 0; c && k < c->parts[part].n; k++) {
        const Piece *p = &c->parts[part].pieces[k];
        const Segment *v = &p->block->columns[column];
        for (uint64_t at = p->from; at < p->from + p->n; at++, row++) {
            starts[row] = used;
            states[row] = v->state ? v->state[at] : v->data ? VALID : INVALID;
            if (!v->data) continue;
            uint64_t first = at ? v->ends[at - 1] : 0, size = v->ends[at] - first;
            memcpy(bytes + used, v->data + first, size);
            used += (int64_t)size;
        }
    }
    starts[row] = used;
}

/* Give back the memory of a column that has been copied. */
EXPORT void spatialq_forget(int64_t number, int part, int column) {
    Collected *c = find_collected(number);
    for (Block *b = c ? c->state.parts[part].first : NULL; b; b = b->next)
        free_column(&c->layout->columns[column], b, &b->columns[column]);
}
