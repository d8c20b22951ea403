/* A loadable extension of DuckDB: columns go to kernels, and rows come back, without lists.

   The names of files stand for their rows: FROM 'scan.laz' is FROM read_points('scan.laz').

   Each function f of the Python package is declared by spatialq_declare() and gets three in SQL,
   where their names begin with "spatialq_":

   f_collect(request, part, columns...)    an aggregate that collects the rows of one call, starts
                                           the kernel, and returns 0;
   f_rows(token)                           a table function that gives the rows of the result: the
                                           token is in the request, and the same in the query;
   f_aggregate(request, part, columns...)  an aggregate that runs the kernel for each group and
                                           returns a list of structs.

   The kernel runs in Python: `run` is called with the numbers of what was collected. Rows are
   asked for while the kernel runs: until they are there, f_rows gives a row whose last column,
   ready, is false, so that DuckDB looks whether the query was interrupted. */
#include "collect.h"
#include "results.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define DEFINE(position, result, name, ...) result (*name)(__VA_ARGS__);
FUNCTIONS(DEFINE)

enum { CHUNK = 2048, MAX_FUNCTIONS = 64, MAX_THREADS = 256, MAX_ENDINGS = 64 };

typedef struct {
    char name[64];
    int number;
    Layout layout;
    Type rows; /* a list of structs */
} Function;

/* Of the name of a file, which a macro reads. */
typedef struct {
    char ending[16], macro[32];
} Ending;

/* An aggregate of a function in one database instance. */
typedef struct {
    const Function *function;
    bool is_grouped; /* f_aggregate, not f_collect */
    bool is_first;   /* of the instance: it tells when that is no more */
    int64_t instance;
} Aggregate;

/* An instance that is no more. */
typedef struct Closed {
    int64_t instance;
    struct Closed *next;
} Closed;

/* Run a function, in an instance, on n collected states, which are Python's from now on. Grouped,
   the array gets n lists, else nothing. 1 if all went well, else `error` holds a sentence; 0 is also
   what ctypes gives for an exception that Python did not handle. */
typedef int (*Run)(int function, int64_t instance, bool is_grouped, uint64_t n, const int64_t *collected,
                   struct ArrowArray *array, struct ArrowSchema *schema, char *error,
                   uint64_t error_size);

static Run run;

/* Python's functions, and the thread in which it handles signals; all zero until Python gives them. */
typedef struct {
    uint64_t main_thread;
    int (*lock_python)(void);
    void (*unlock_python)(int);
    int (*check)(void);
    void (*clear)(void);
} Signals;

static Signals signals;
static Function functions[MAX_FUNCTIONS];
static int n_functions;
static Ending endings[MAX_ENDINGS];
static int n_endings;
static int64_t loading; /* the instance into which the extension is being loaded */
static Lock closed_lock = LOCK_INIT;
static Closed *closed;

/* ---- the aggregates ---- */

static idx_t state_size(Handle info) {
    (void)info;
    return sizeof(State);
}

static void init_state(Handle info, void *state) {
    (void)info;
    memset(state, 0, sizeof(State));
}

static const Aggregate *aggregate_of(Handle info) {
    return duckdb_aggregate_function_get_extra_info(info);
}

static bool is_same(const char *request, const String *other) {
    return strlen(request) == other->length && !memcmp(request, string_bytes(other), other->length);
}

static bool remember(State *state, const String *request) {
    if (state->request) {
        state->differs |= !is_same(state->request, request);
        return true;
    }
    state->request = malloc(request->length + 1);
    if (!state->request) return false;
    memcpy(state->request, string_bytes(request), request->length);
    state->request[request->length] = 0;
    return true;
}

static void update(Handle info, Handle chunk, void **states) {
    const Layout *layout = &aggregate_of(info)->function->layout;
    idx_t n = duckdb_data_chunk_get_size(chunk);
    Handle requests = duckdb_data_chunk_get_vector(chunk, 0);
    Handle parts = duckdb_data_chunk_get_vector(chunk, 1);
    const String *request = duckdb_vector_get_data(requests);
    const uint64_t *has_request = duckdb_vector_get_validity(requests);
    const uint8_t *part = duckdb_vector_get_data(parts);
    const uint64_t *has_part = duckdb_vector_get_validity(parts);
    Values values[MAX_COLUMNS];
    for (int c = 0; c < layout->n_columns; c++) {
        Handle vector = duckdb_data_chunk_get_vector(chunk, c + 2);
        values[c] = (Values){duckdb_vector_get_data(vector), duckdb_vector_get_validity(vector),
                             NULL, NULL};
        if (layout->columns[c].kind == KIND_LIST) {
            Handle child = duckdb_list_vector_get_child(vector);
            values[c].elements = duckdb_vector_get_data(child);
            values[c].valid_elements = duckdb_vector_get_validity(child);
        }
    }
    bool enough = true;
    for (idx_t i = 0, stop; enough && i < n; i = stop) { /* runs of one state and one part */
        State *state = states[i];
        stop = i + 1;
        if (is_valid(has_request, i)) enough = remember(state, &request[i]);
        if (!enough) break;
        if (!is_valid(has_part, i) || part[i] >= PARTS) continue; /* stands for a table without rows */
        while (stop < n && states[stop] == state && is_valid(has_part, stop) && part[stop] == part[i]
               && (!is_valid(has_request, stop)
                   || (state->request && is_same(state->request, &request[stop]))))
            stop++;
        enough = enough && append(layout, &state->parts[part[i]], values, i, stop - i);
    }
    if (!enough) duckdb_aggregate_function_set_error(info, "spatialq: not enough memory for the rows");
}

static void combine(Handle info, void **sources, void **targets, idx_t n) {
    (void)info;
    for (idx_t i = 0; i < n; i++) move_rows(targets[i], sources[i]);
}

static void finalize(Handle info, void **states, Handle result, idx_t n, idx_t offset) {
    const Aggregate *aggregate = aggregate_of(info);
    const Function *function = aggregate->function;
    struct ArrowArray array = {0};
    struct ArrowSchema schema = {0};
    char error[4096] = "spatialq: not enough memory for the rows";
    int64_t *collected = calloc(n, sizeof *collected);
    bool went_well = collected != NULL;
    for (idx_t i = 0; went_well && i < n; i++) {
        const State *state = states[i];
        /* frames of a window share states, of which each combination takes the rows away */
        const char *why = state->is_wrong || state->is_taken
                              ? "a window frame cannot be used, use GROUP BY"
                          : state->differs ? "the parameters must be the same for all rows of a group"
                                           : NULL;
        if (why) snprintf(error, sizeof error, "%s_list: %s", function->name, why);
        went_well = !why;
    }
    for (idx_t i = 0; went_well && i < n; i++)
        went_well = (collected[i] = keep_collected(&function->layout, states[i])) != 0;
    if (went_well) {
        strcpy(error, "spatialq: the function could not be run");
        went_well = run(function->number, aggregate->instance, aggregate->is_grouped, n, collected, &array, &schema, error,
                        sizeof error) == 1 && (array.release || !aggregate->is_grouped);
    } else {
        for (idx_t i = 0; collected && i < n; i++) spatialq_free(collected[i]);
    }
    if (went_well && aggregate->is_grouped) {
        strcpy(error, "spatialq: not enough memory for the result");
        went_well = put(&function->rows, &schema, &array, 0, n, result, offset);
    } else if (went_well) {
        memset((int64_t *)duckdb_vector_get_data(result) + offset, 0, n * sizeof(int64_t));
    }
    if (!went_well) duckdb_aggregate_function_set_error(info, error);
    if (array.release) array.release(&array);
    if (schema.release) schema.release(&schema);
    free(collected);
}

static void destroy_states(void **states, idx_t n) {
    for (idx_t i = 0; i < n; i++) free_state(states[i]);
}

/* ---- the table function ---- */

typedef struct {
    const Function *function;
    int64_t token;
} Plan;

typedef struct {
    Scan scan;
    const Function *function;
    int n_columns;
    int columns[]; /* positions; the one behind the last column is `ready` */
} Reading;

static void free_plan(void *data) {
    end_plan(((Plan *)data)->token);
    free(data);
}

static void free_reading(void *data) {
    end_scan(&((Reading *)data)->scan);
    free(data);
}

static const Type *row_type(const Function *function) { return &function->rows.children[0]; }

static void add_column(Handle info, const char *name, Handle type) {
    duckdb_bind_add_result_column(info, name, type);
    duckdb_destroy_logical_type(&type);
}

static void bind(Handle info) {
    const Function *function = duckdb_bind_get_extra_info(info);
    const Type *row = row_type(function);
    for (int k = 0; k < row->n_children; k++)
        add_column(info, row->children[k].name, logical_type(&row->children[k]));
    add_column(info, "ready", duckdb_create_logical_type(TYPE_BOOLEAN));
    Handle value = duckdb_bind_get_parameter(info, 0);
    Plan *plan = malloc(sizeof *plan);
    if (plan) *plan = (Plan){function, duckdb_get_int64(value)};
    duckdb_destroy_value(&value);
    if (!plan || !begin_plan(plan->token)) {
        free(plan);
        duckdb_bind_set_error(info, "spatialq: not enough memory");
        return;
    }
    duckdb_bind_set_bind_data(info, plan, free_plan);
    /* as many as no table has: joins then read the result last, when the kernel has its input */
    duckdb_bind_set_cardinality(info, 1000000000, false);
}

static void init(Handle info) {
    const Plan *plan = duckdb_init_get_bind_data(info);
    int n = (int)duckdb_init_get_column_count(info);
    Reading *reading = malloc(sizeof *reading + n * sizeof(int));
    const char *why = "there is not enough memory";
    if (!reading || !begin_scan(plan->token, &reading->scan, &why)) {
        char error[256];
        snprintf(error, sizeof error, "%s: %s", plan->function->name, why);
        duckdb_init_set_error(info, error);
        free(reading);
        return;
    }
    reading->function = plan->function;
    reading->n_columns = n;
    for (int k = 0; k < n; k++) reading->columns[k] = (int)duckdb_init_get_column_index(info, k);
    duckdb_init_set_init_data(info, reading, free_reading);
    duckdb_init_set_max_threads(info, MAX_THREADS);
}

static void init_thread(Handle info) {
    Span *span = calloc(1, sizeof *span);
    if (span) duckdb_init_set_init_data(info, span, free);
    else duckdb_init_set_error(info, "spatialq: not enough memory");
}

/* Whether a signal's handler raised an exception. DuckDB may let the main thread, where alone Python
   handles signals, wait for rows until the kernel has ended. The query gets an error instead of the
   exception. */
static bool is_interrupted(void) {
    if (!signals.check || this_thread() != signals.main_thread) return false;
    int state = signals.lock_python();
    bool found = signals.check() != 0;
    if (found) signals.clear();
    signals.unlock_python(state);
    return found;
}

static void read_rows(Handle info, Handle chunk) {
    Reading *reading = duckdb_function_get_init_data(info);
    Span *span = duckdb_function_get_local_init_data(info);
    const Type *row = row_type(reading->function);
    if (!span->batch || span->at == span->stop) {
        const char *error = NULL;
        switch (next_span(&reading->scan, span, &error)) {
        case ROWS: break;
        case SCAN_FAILED: duckdb_function_set_error(info, error); /* fall through */
        case END: duckdb_data_chunk_set_size(chunk, 0); return;
        case WAITING:
            if (is_interrupted()) {
                duckdb_function_set_error(info, "Query interrupted");
                return;
            }
            for (int k = 0; k < reading->n_columns; k++) {
                Handle vector = duckdb_data_chunk_get_vector(chunk, k);
                if (reading->columns[k] < row->n_children) put_null(vector, 0);
                else *(bool *)duckdb_vector_get_data(vector) = false;
            }
            duckdb_data_chunk_set_size(chunk, 1);
            return;
        }
    }
    const struct ArrowArray *array = batch_array(span->batch);
    const struct ArrowSchema *schema = batch_schema(span->batch);
    int64_t n = (int64_t)(span->stop - span->at);
    if (n > CHUNK) n = CHUNK;
    for (int k = 0; k < reading->n_columns; k++) {
        int column = reading->columns[k];
        Handle vector = duckdb_data_chunk_get_vector(chunk, k);
        if (column >= row->n_children) {
            memset(duckdb_vector_get_data(vector), 1, n);
        } else if (!put(&row->children[column], schema->children[column], array->children[column],
                        array->offset + (int64_t)span->at, n, vector, 0)) {
            duckdb_function_set_error(info, "spatialq: not enough memory for the result");
            return;
        }
    }
    duckdb_data_chunk_set_size(chunk, n);
    span->at += n;
}

/* ---- the names of files ---- */

static bool ends_in(const char *name, const char *ending) {
    size_t n = strlen(name), m = strlen(ending);
    if (n < m) return false;
    for (size_t k = 0; k < m; k++)
        if (tolower((unsigned char)name[n - m + k]) != ending[k]) return false;
    return true;
}

/* DuckDB calls this with the name of a table that is not there. */
static void replace_file(Handle info, const char *name, void *unused) {
    (void)unused;
    for (int k = 0; k < n_endings; k++) {
        if (!ends_in(name, endings[k].ending)) continue;
        duckdb_replacement_scan_set_function_name(info, endings[k].macro);
        Handle value = duckdb_create_varchar(name);
        duckdb_replacement_scan_add_parameter(info, value);
        duckdb_destroy_value(&value);
        return;
    }
}

/* ---- registration ---- */

static void add_parameter(Handle aggregate, Handle type) {
    duckdb_aggregate_function_add_parameter(aggregate, type);
    duckdb_destroy_logical_type(&type);
}

static Handle column_type(const Column *column) {
    Handle type = duckdb_create_logical_type(column->type);
    if (column->kind != KIND_LIST) return type;
    Handle list = duckdb_create_list_type(type);
    duckdb_destroy_logical_type(&type);
    return list;
}

/* DuckDB calls this when an instance is closed, and no query of it is left. */
static void free_aggregate(void *data) {
    const Aggregate *aggregate = data;
    Closed *one = aggregate->is_first ? malloc(sizeof *one) : NULL;
    if (one) { /* else what Python has for the instance stays */
        lock(&closed_lock);
        *one = (Closed){aggregate->instance, closed};
        closed = one;
        unlock(&closed_lock);
    }
    free(data);
}

static bool register_aggregate(Handle connection, const Function *function, int64_t instance,
                               bool is_grouped) {
    char name[96];
    snprintf(name, sizeof name, "spatialq_%.63s_%s", function->name, is_grouped ? "aggregate" : "collect");
    Aggregate *known = malloc(sizeof *known);
    if (!known) return false;
    *known = (Aggregate){function, is_grouped, function == functions && !is_grouped, instance};
    Handle made = duckdb_create_aggregate_function();
    duckdb_aggregate_function_set_name(made, name);
    add_parameter(made, duckdb_create_logical_type(TYPE_VARCHAR));
    add_parameter(made, duckdb_create_logical_type(TYPE_UTINYINT));
    for (int c = 0; c < function->layout.n_columns; c++)
        add_parameter(made, column_type(&function->layout.columns[c]));
    Handle type =
        is_grouped ? logical_type(&function->rows) : duckdb_create_logical_type(TYPE_BIGINT);
    duckdb_aggregate_function_set_return_type(made, type);
    duckdb_destroy_logical_type(&type);
    duckdb_aggregate_function_set_functions(made, state_size, init_state, update, combine, finalize);
    duckdb_aggregate_function_set_destructor(made, destroy_states);
    duckdb_aggregate_function_set_special_handling(made); /* NULL is given, too */
    duckdb_aggregate_function_set_extra_info(made, known, free_aggregate);
    bool went_well = duckdb_register_aggregate_function(connection, made) == 0;
    duckdb_destroy_aggregate_function(&made);
    return went_well;
}

static bool register_rows(Handle connection, const Function *function) {
    char name[96];
    snprintf(name, sizeof name, "spatialq_%.63s_rows", function->name);
    Handle made = duckdb_create_table_function();
    duckdb_table_function_set_name(made, name);
    Handle type = duckdb_create_logical_type(TYPE_BIGINT);
    duckdb_table_function_add_parameter(made, type);
    duckdb_destroy_logical_type(&type);
    duckdb_table_function_set_extra_info(made, (void *)function, NULL);
    duckdb_table_function_set_bind(made, bind);
    duckdb_table_function_set_init(made, init);
    duckdb_table_function_set_local_init(made, init_thread);
    duckdb_table_function_set_function(made, read_rows);
    duckdb_table_function_supports_projection_pushdown(made, true);
    bool went_well = duckdb_register_table_function(connection, made) == 0;
    duckdb_destroy_table_function(&made);
    return went_well;
}

/* Take DuckDB's functions from its table, which does not stay. Gives NULL, or the name of the first
   that is not where it is expected: then none is called, since another is there. */
static const char *take_functions(void *const *table) {
#define NAMED(position, result, name, ...) {position, #name},
    static const struct { int position; const char *name; } used[] = {FUNCTIONS(NAMED)};
    for (size_t k = 0; k < sizeof used / sizeof *used; k++)
        if (!is_named(table[used[k].position], used[k].name)) return used[k].name;
#define TAKE(position, result, name, ...) name = (result (*)(__VA_ARGS__))table[position];
    FUNCTIONS(TAKE)
    return NULL;
}

/* DuckDB calls this when the extension is loaded into a database. */
EXPORT bool spatialq_init_c_api(void *info, struct Access *access) {
    void *const *given = access->get_api(info, API_VERSION);
    if (!given) return false;
    const char *misplaced = take_functions(given);
    if (misplaced) {
        char error[128];
        snprintf(error, sizeof error, "spatialq needs DuckDB 2.0: %s is elsewhere in this one", misplaced);
        access->set_error(info, error);
        return false;
    }
    int64_t instance = loading; /* of this database alone */
    loading = 0;
    if (!instance) {
        access->set_error(info, "spatialq: the extension is loaded by spatialq.connect() in Python");
        return false;
    }
    Handle connection = NULL;
    if (duckdb_connect(*access->get_database(info), &connection) != 0) {
        access->set_error(info, "spatialq: the extension found no connection to the database");
        return false;
    }
    bool went_well = true;
    for (int k = 0; went_well && k < n_functions; k++)
        went_well = register_aggregate(connection, &functions[k], instance, false)
                    && register_aggregate(connection, &functions[k], instance, true)
                    && register_rows(connection, &functions[k]);
    duckdb_disconnect(&connection);
    duckdb_add_replacement_scan(*access->get_database(info), replace_file, NULL, NULL);
    if (!went_well) access->set_error(info, "spatialq: the extension could not register a function");
    return went_well;
}

/* ---- what Python calls ---- */

/* Say who runs functions. */
EXPORT void spatialq_set_run(Run given) { run = given; }

/* How signals are handled in Python's main thread. */
EXPORT void spatialq_set_signals(uint64_t main_thread, int (*lock_python)(void),
                                 void (*unlock_python)(int), int (*check)(void), void (*clear)(void)) {
    signals = (Signals){main_thread, lock_python, unlock_python, check, clear};
}

/* Say, before the extension is loaded, what Python calls the database instance. */
EXPORT void spatialq_set_instance(int64_t number) { loading = number; }

/* Forget in a fork what was closed in its parent. */
EXPORT void spatialq_forget_closed(void) {
    closed_lock = (Lock)LOCK_INIT;
    closed = NULL;
}

/* Give an instance that is no more, each once, or 0. */
EXPORT int64_t spatialq_closed_instance(void) {
    lock(&closed_lock);
    Closed *one = closed;
    if (one) closed = one->next;
    unlock(&closed_lock);
    int64_t instance = one ? one->instance : 0;
    free(one);
    return instance;
}

/* Say, before the extension is loaded, which macro reads files whose names end so, in lower case.
   False if that cannot be. */
EXPORT bool spatialq_read_by(const char *ending, const char *macro) {
    if (n_endings == MAX_ENDINGS || strlen(ending) >= sizeof endings[0].ending
        || strlen(macro) >= sizeof endings[0].macro)
        return false;
    strcpy(endings[n_endings].ending, ending);
    strcpy(endings[n_endings].macro, macro);
    n_endings++;
    return true;
}

static bool add_declared(Layout *layout, const char *format) {
    struct ArrowSchema schema = {.format = format, .name = ""};
    bool is_list = format[0] == '[';
    schema.format += is_list;
    Type type;
    if (layout->n_columns == MAX_COLUMNS || !make_type(&type, &schema, false)) return false;
    static const int widths[] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8};
    bool is_text = type.id == TYPE_VARCHAR, is_known = type.id <= TYPE_DOUBLE || is_text;
    if (is_known)
        layout->columns[layout->n_columns++] = (Column){
            is_list ? KIND_LIST : is_text ? KIND_TEXT : KIND_FIXED, is_text ? 1 : widths[type.id], type.id};
    free_type(&type);
    return is_known;
}

/* Declare a function before the extension is loaded: its name; the Arrow formats of its columns,
   '[' before the format of a list's elements; and the schema of its result, a list of structs.
   Returns its number, -1 if that cannot be. */
EXPORT int spatialq_declare(const char *name, const char *const *formats, int n_columns,
                            const struct ArrowSchema *rows) {
    if (n_functions == MAX_FUNCTIONS || strlen(name) >= sizeof functions[0].name) return -1;
    Function *function = &functions[n_functions];
    memset(function, 0, sizeof *function);
    strcpy(function->name, name);
    function->number = n_functions;
    for (int c = 0; c < n_columns; c++)
        if (!add_declared(&function->layout, formats[c])) return -1;
    function->layout.is_ordered = n_columns > 0 && formats[0][0] == 'l';
    if (!make_type(&function->rows, rows, true)) return -1;
    return n_functions++;
}
