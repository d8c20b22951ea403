#include "results.h"

#include "collect.h"

#include <math.h>
#include <string.h>

/* ---- types ---- */

static int type_id(const char *format) {
    switch (format[0]) {
    case 'b': return TYPE_BOOLEAN;
    case 'c': return TYPE_TINYINT;
    case 'C': return TYPE_UTINYINT;
    case 's': return TYPE_SMALLINT;
    case 'S': return TYPE_USMALLINT;
    case 'i': return TYPE_INTEGER;
    case 'I': return TYPE_UINTEGER;
    case 'l': return TYPE_BIGINT;
    case 'L': return TYPE_UBIGINT;
    case 'f': return TYPE_FLOAT;
    case 'g': return TYPE_DOUBLE;
    case 'u': return TYPE_VARCHAR;
    case 'z': return TYPE_BLOB;
    case 'Z': return TYPE_GEOMETRY; /* large_binary stands for WKB */
    case '+': return format[1] == 's' ? TYPE_STRUCT : format[1] == 'l' ? TYPE_LIST : 0;
    }
    return 0;
}

static char *copy_text(const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

bool make_type(Type *type, const struct ArrowSchema *schema, bool is_column) {
    memset(type, 0, sizeof *type);
    type->id = type_id(schema->format);
    type->name = copy_text(schema->name ? schema->name : "");
    type->nan_is_null = is_column && (type->id == TYPE_DOUBLE || type->id == TYPE_FLOAT);
    if (!type->id || !type->name) return false;
    type->children = calloc(schema->n_children + 1, sizeof(Type));
    if (!type->children) return false;
    type->n_children = (int)schema->n_children;
    bool is_row = is_column && type->id == TYPE_STRUCT;
    bool is_rows = is_column && type->id == TYPE_LIST;
    for (int k = 0; k < type->n_children; k++)
        if (!make_type(&type->children[k], schema->children[k], is_row || is_rows)) return false;
    return true;
}

void free_type(Type *type) {
    for (int k = 0; k < type->n_children; k++) free_type(&type->children[k]);
    free(type->children);
    free(type->name);
}

Handle logical_type(const Type *type) {
    Handle made = NULL;
    if (type->id == TYPE_LIST) {
        Handle child = logical_type(&type->children[0]);
        made = duckdb_create_list_type(child);
        duckdb_destroy_logical_type(&child);
    } else if (type->id == TYPE_STRUCT) {
        Handle *children = calloc(type->n_children, sizeof *children);
        const char **names = calloc(type->n_children, sizeof *names);
        if (children && names) {
            for (int k = 0; k < type->n_children; k++) {
                children[k] = logical_type(&type->children[k]);
                names[k] = type->children[k].name;
            }
            made = duckdb_create_struct_type(children, names, type->n_children);
            for (int k = 0; k < type->n_children; k++) duckdb_destroy_logical_type(&children[k]);
        }
        free(children);
        free(names);
    } else {
        made = duckdb_create_logical_type(type->id);
    }
    return made;
}

/* ---- values ---- */

static uint64_t *writable_validity(Handle vector) {
    duckdb_vector_ensure_validity_writable(vector);
    return duckdb_vector_get_validity(vector);
}

static void unset(uint64_t *validity, idx_t at) { validity[at / 64] &= ~((uint64_t)1 << (at % 64)); }

void put_null(Handle vector, idx_t at) { unset(writable_validity(vector), at); }

static bool bit(const void *bits, int64_t at) { return ((const uint8_t *)bits)[at / 8] >> (at % 8) & 1; }

static int width_of(int type) {
    switch (type) {
    case TYPE_BOOLEAN: case TYPE_TINYINT: case TYPE_UTINYINT: return 1;
    case TYPE_SMALLINT: case TYPE_USMALLINT: return 2;
    case TYPE_INTEGER: case TYPE_UINTEGER: case TYPE_FLOAT: return 4;
    case TYPE_BIGINT: case TYPE_UBIGINT: case TYPE_DOUBLE: return 8;
    }
    return 0;
}

static void put_numbers(const Type *type, const struct ArrowSchema *schema, const void *values,
                        int64_t from, int64_t n, Handle vector, idx_t at) {
    uint8_t *target = duckdb_vector_get_data(vector);
    if (type->id == TYPE_BOOLEAN && schema->format[0] == 'b') { /* bits; else bytes */
        for (int64_t i = 0; i < n; i++) target[at + i] = bit(values, from + i);
        return;
    }
    int width = width_of(type->id);
    memcpy(target + at * width, (const uint8_t *)values + from * width, n * width);
    if (!type->nan_is_null) return;
    uint64_t *validity = NULL;
    for (int64_t i = 0; i < n; i++)
        if (type->id == TYPE_DOUBLE ? isnan(((const double *)values)[from + i])
                                    : isnan(((const float *)values)[from + i])) {
            if (!validity) validity = writable_validity(vector);
            unset(validity, at + i);
        }
}

/* Copy which values are valid; both have a bit for each, the first one lowest. */
static void put_validity(const struct ArrowArray *array, int64_t from, int64_t n, Handle vector,
                         idx_t at) {
    const uint8_t *bits = array->buffers[0];
    if (array->null_count == 0 || !bits || n == 0) return;
    uint64_t *validity = writable_validity(vector);
    int64_t i = 0;
    if (from % 8 == 0 && at % 64 == 0)
        for (; i + 64 <= n; i += 64) memcpy(&validity[(at + i) / 64], bits + (from + i) / 8, 8);
    for (; i < n; i++)
        if (!bit(bits, from + i)) unset(validity, at + i);
}

static int64_t offset_at(const struct ArrowSchema *schema, const void *offsets, int64_t at) {
    bool is_large = strchr("UZ", schema->format[0]) || !strcmp(schema->format, "+L");
    return is_large ? ((const int64_t *)offsets)[at] : ((const int32_t *)offsets)[at];
}

static bool put_list(const Type *type, const struct ArrowSchema *schema,
                     const struct ArrowArray *array, int64_t from, int64_t n, Handle vector,
                     idx_t at) {
    const void *offsets = array->buffers[1];
    idx_t used = duckdb_list_vector_get_size(vector);
    int64_t first = n ? offset_at(schema, offsets, from) : 0;
    int64_t stop = n ? offset_at(schema, offsets, from + n) : 0;
    if (duckdb_list_vector_reserve(vector, used + stop - first) != 0) return false;
    ListEntry *entries = (ListEntry *)duckdb_vector_get_data(vector) + at;
    for (int64_t i = 0; i < n; i++) {
        int64_t begin = offset_at(schema, offsets, from + i);
        entries[i].offset = used + begin - first;
        entries[i].length = offset_at(schema, offsets, from + i + 1) - begin;
    }
    /* before the elements, since a list of lists in a list asks for the size, too */
    if (duckdb_list_vector_set_size(vector, used + stop - first) != 0) return false;
    return put(&type->children[0], schema->children[0], array->children[0], first, stop - first,
               duckdb_list_vector_get_child(vector), used);
}

bool put(const Type *type, const struct ArrowSchema *schema, const struct ArrowArray *array,
         int64_t from, int64_t n, Handle vector, idx_t at) {
    from += array->offset;
    put_validity(array, from, n, vector, at);
    switch (type->id) {
    case TYPE_STRUCT:
        for (int k = 0; k < type->n_children; k++)
            if (!put(&type->children[k], schema->children[k], array->children[k], from, n,
                     duckdb_struct_vector_get_child(vector, k), at))
                return false;
        break;
    case TYPE_LIST:
        if (!put_list(type, schema, array, from, n, vector, at)) return false;
        break;
    case TYPE_VARCHAR: case TYPE_BLOB: case TYPE_GEOMETRY:
        for (int64_t i = 0; i < n; i++) {
            int64_t begin = offset_at(schema, array->buffers[1], from + i);
            int64_t end = offset_at(schema, array->buffers[1], from + i + 1);
            if (array->null_count != 0 && array->buffers[0] && !bit(array->buffers[0], from + i))
                continue; /* NULL */
            duckdb_vector_assign_string_element_len(
                vector, at + i, (const char *)array->buffers[2] + begin, end - begin);
        }
        break;
    default:
        if (n) put_numbers(type, schema, array->buffers[1], from, n, vector, at);
    }
    return true;
}

/* ---- calls ---- */

enum { SPAN = 122880, PATIENCE = 10 /* milliseconds */ };

struct Batch {
    Batch *next;
    const struct ArrowArray *array;
    const struct ArrowSchema *schema;
    uint64_t rows, done; /* done: rows that have been read */
};

struct Call {
    Call *next;
    int64_t token;
    int scans;
    bool is_stream, is_complete, is_failed, was_scanned;
    char *error;
    Batch *first, *last;
};

/* A plan that asks for the rows of a call, until it is gone. */
typedef struct Plan {
    struct Plan *next;
    int64_t token;
} Plan;

static Lock calls_lock = LOCK_INIT;
static Signal calls_changed = SIGNAL_INIT; /* for scans, and for threads of Python */
static Call *calls, *dropped;
static Plan *plans;
static bool is_stopped;

static Call *find_call(int64_t token) {
    Call *call = calls;
    while (call && call->token != token) call = call->next;
    return call;
}

/* Nobody will ask for the result any more: Python is told, which stops the kernel and frees. */
static void drop(Call *call) {
    Call **at = &calls;
    while (*at != call) at = &(*at)->next;
    *at = call->next;
    call->next = dropped;
    dropped = call;
    notify(&calls_changed);
}

bool begin_scan(int64_t token, Scan *scan, const char **why) {
    *why = NULL;
    lock(&calls_lock);
    Call *call = find_call(token);
    if (!call) *why = "its rows were asked for before it got its input";
    else if (call->is_stream && call->was_scanned) *why = "its rows can be read only once";
    else {
        *scan = (Scan){call, NULL, 0};
        call->scans++;
        call->was_scanned = true;
    }
    unlock(&calls_lock);
    return !*why;
}

void end_scan(Scan *scan) {
    lock(&calls_lock);
    if (--scan->call->scans == 0) drop(scan->call);
    unlock(&calls_lock);
}

bool begin_plan(int64_t token) {
    Plan *plan = malloc(sizeof *plan);
    if (!plan) return false;
    lock(&calls_lock);
    *plan = (Plan){plans, token};
    plans = plan;
    unlock(&calls_lock);
    return true;
}

void end_plan(int64_t token) {
    lock(&calls_lock);
    Plan **at = &plans;
    while (*at && (*at)->token != token) at = &(*at)->next;
    Plan *plan = *at;
    if (plan) *at = plan->next;
    free(plan);
    Call *call = find_call(token);
    if (call && call->scans == 0) drop(call);
    unlock(&calls_lock);
}

static bool claim(Scan *scan, Span *span) {
    if (!scan->batch) scan->batch = scan->call->first;
    while (scan->batch && scan->next == scan->batch->rows && scan->batch->next) {
        scan->batch = scan->batch->next;
        scan->next = 0;
    }
    if (!scan->batch || scan->next == scan->batch->rows) return false;
    uint64_t left = scan->batch->rows - scan->next;
    span->batch = scan->batch;
    span->begin = span->at = scan->next;
    span->stop = scan->next += left < SPAN ? left : SPAN;
    return true;
}

Found next_span(Scan *scan, Span *span, const char **error) {
    Call *call = scan->call;
    lock(&calls_lock);
    if (span->batch) {
        span->batch->done += span->stop - span->begin;
        if (call->is_stream && span->batch->done == span->batch->rows) notify(&calls_changed);
        span->batch = NULL;
    }
    Found found = WAITING;
    for (bool waited = false; found == WAITING; waited = true) {
        if (call->is_failed) {
            *error = call->error ? call->error : "spatialq: not enough memory";
            found = SCAN_FAILED;
        } else if (claim(scan, span)) {
            found = ROWS;
        } else if (call->is_complete) {
            found = END;
        } else if (waited) {
            break;
        } else {
            wait_briefly(&calls_changed, &calls_lock, PATIENCE);
        }
    }
    unlock(&calls_lock);
    return found;
}

const struct ArrowArray *batch_array(const Batch *batch) { return batch->array; }
const struct ArrowSchema *batch_schema(const Batch *batch) { return batch->schema; }

/* ---- what Python calls ---- */

enum { BEGUN, UNWANTED, TWICE, NO_MEMORY };

/* Register a call whose result comes in one batch, or as a stream of batches that are read once.
   UNWANTED if no plan asks for its rows, TWICE if the token is in use: two inputs for one result. */
EXPORT int spatialq_begin(int64_t token, bool is_stream) {
    Call *made = calloc(1, sizeof *made);
    if (!made) return NO_MEMORY;
    lock(&calls_lock);
    Plan *plan = plans;
    while (plan && plan->token != token) plan = plan->next;
    int found = !plan ? UNWANTED : find_call(token) ? TWICE : BEGUN;
    if (found == BEGUN) {
        made->token = token;
        made->is_stream = is_stream;
        made->next = calls;
        calls = made;
    }
    unlock(&calls_lock);
    if (found != BEGUN) free(made);
    return found;
}

/* Add rows to a result, which stay with the caller until the call is dropped. False if nobody wants
   them any more, or there is no memory. */
EXPORT bool spatialq_push(int64_t token, const struct ArrowArray *array,
                          const struct ArrowSchema *schema) {
    Batch *batch = calloc(1, sizeof *batch);
    lock(&calls_lock);
    Call *call = batch ? find_call(token) : NULL;
    if (call) {
        *batch = (Batch){NULL, array, schema, (uint64_t)array->length, 0};
        if (call->last) call->last->next = batch;
        else call->first = batch;
        call->last = batch;
        notify(&calls_changed);
    }
    unlock(&calls_lock);
    if (!call) free(batch);
    return call != NULL;
}

/* No more rows are added. */
EXPORT void spatialq_finish(int64_t token) {
    lock(&calls_lock);
    Call *call = find_call(token);
    if (call) call->is_complete = true;
    notify(&calls_changed);
    unlock(&calls_lock);
}

/* End a call with an error, which the query gets. */
EXPORT void spatialq_fail(int64_t token, const char *error) {
    lock(&calls_lock);
    Call *call = find_call(token);
    if (call && !call->is_failed) {
        call->is_failed = true;
        call->error = copy_text(error);
        notify(&calls_changed);
    }
    unlock(&calls_lock);
}

/* How many batches of a stream have been read, from the first one on; waits a little while it is
   less than `n`. */
EXPORT uint64_t spatialq_wait_read(int64_t token, uint64_t n) {
    uint64_t read = 0;
    lock(&calls_lock);
    for (int tries = 0; tries < 2; tries++) {
        Call *call = find_call(token);
        read = 0;
        for (Batch *b = call ? call->first : NULL; b && b->done == b->rows; b = b->next) read++;
        if (read >= n) break;
        if (tries == 0) wait_briefly(&calls_changed, &calls_lock, PATIENCE);
    }
    unlock(&calls_lock);
    return read;
}

/* Wait for a call whose result nobody wants any more, and give its token; 0 after spatialq_stop. */
EXPORT int64_t spatialq_wait_dropped(void) {
    lock(&calls_lock);
    while (!dropped && !is_stopped) wait_for(&calls_changed, &calls_lock);
    Call *call = dropped;
    if (!call) {
        unlock(&calls_lock);
        return 0;
    }
    dropped = call->next;
    unlock(&calls_lock);
    int64_t token = call->token;
    for (Batch *b = call->first; b;) {
        Batch *next = b->next;
        free(b);
        b = next;
    }
    free(call->error);
    free(call);
    return token;
}

/* End the waiting for dropped calls: the process ends. */
EXPORT void spatialq_stop(void) {
    lock(&calls_lock);
    is_stopped = true;
    notify(&calls_changed);
    unlock(&calls_lock);
}

/* How many results are held. */
EXPORT int64_t spatialq_count_calls(void) {
    int64_t n = 0;
    lock(&calls_lock);
    for (Call *c = calls; c; c = c->next) n++;
    unlock(&calls_lock);
    return n;
}

/* Begin anew in a fork, which has neither the threads nor the queries of its parent. */
EXPORT void spatialq_forked(void) {
    calls_lock = (Lock)LOCK_INIT;
    calls_changed = (Signal)SIGNAL_INIT;
    calls = dropped = NULL;
    plans = NULL;
    is_stopped = false;
    forget_all_collected();
}
