/* Results of kernels, which arrive as Arrow arrays and leave as DuckDB's vectors. */
#ifndef SPATIALQ_RESULTS_H
#define SPATIALQ_RESULTS_H

#include "duckdb_api.h"
#include "platform.h"

/* A type of a result, made from the schema of the Arrow array. */
typedef struct Type {
    char *name;
    int id; /* as in duckdb_api.h */
    bool nan_is_null;
    int n_children;
    struct Type *children;
} Type;

/* Make a type of a schema; false if there is no memory or no such type in SQL. The fields of the
   outermost struct are the columns of the result, in which NaN means NULL. */
bool make_type(Type *type, const struct ArrowSchema *schema, bool is_column);
void free_type(Type *type);
Handle logical_type(const Type *type);

/* Copy rows [from, from + n) of an array into a vector, from row `at` on. */
bool put(const Type *type, const struct ArrowSchema *schema, const struct ArrowArray *array,
         int64_t from, int64_t n, Handle vector, idx_t at);

/* Mark a row of a vector as NULL. */
void put_null(Handle vector, idx_t at);

/* ---- calls: a result belongs to a token from the kernel's start to the end of the query ---- */

typedef struct Call Call;
typedef struct Batch Batch;

/* What one scan has read. */
typedef struct {
    Call *call;
    Batch *batch;
    uint64_t next;
} Scan;

/* What a thread of a scan reads: rows [begin, stop) of a batch, of which it is at `at`. */
typedef struct {
    Batch *batch;
    uint64_t begin, at, stop;
} Span;

typedef enum { ROWS, WAITING, END, SCAN_FAILED } Found;

/* Begin to scan the result of a call; false, with a message, if it cannot be scanned. */
bool begin_scan(int64_t token, Scan *scan, const char **why);
void end_scan(Scan *scan);

/* Find the next rows for a thread, which is done with its last ones. While the kernel runs the
   answer comes after some milliseconds: WAITING. */
Found next_span(Scan *scan, Span *span, const char **error);

const struct ArrowArray *batch_array(const Batch *batch);
const struct ArrowSchema *batch_schema(const Batch *batch);

/* A plan asks for the rows of a call, until it is gone: then a result that nobody scanned goes. */
bool begin_plan(int64_t token);
void end_plan(int64_t token);

#endif
