/* Columns that an aggregate collects, row by row, for a kernel. */
#ifndef SPATIALQ_COLLECT_H
#define SPATIALQ_COLLECT_H

#include "duckdb_api.h"
#include "platform.h"

enum { MAX_COLUMNS = 16, PARTS = 2 };

typedef enum { KIND_FIXED, KIND_TEXT, KIND_LIST } Kind;

/* What a column holds. */
typedef struct {
    Kind kind;
    int width; /* bytes of a value; of an element in a list */
    int type;  /* as in duckdb_api.h */
} Column;

typedef struct {
    int n_columns;
    bool is_ordered; /* by the first column, a BIGINT: see put_in_order() */
    Column columns[MAX_COLUMNS];
} Layout;

typedef struct Block Block;

/* The rows of one table; blocks grow with the table, so that a group of ten rows stays small. */
typedef struct {
    Block *first, *last;
    uint64_t rows;
} Chain;

/* The state of an aggregate: one for each group and thread until they are combined. */
typedef struct {
    char *request; /* what to do with the rows: the aggregate's first argument */
    bool differs;  /* whether it was not the same for all rows */
    bool is_taken; /* whether the rows went to another state: then they are not here any more */
    bool is_wrong; /* whether rows were wanted that had gone to another state */
    Chain parts[PARTS]; /* rows of the first and the second table of a call */
} State;

/* A vector of values as DuckDB gives it. */
typedef struct {
    const void *data;
    const uint64_t *validity;       /* NULL where all are valid */
    const void *elements;           /* of lists */
    const uint64_t *valid_elements; /* of lists */
} Values;

static inline bool is_valid(const uint64_t *validity, idx_t row) {
    return !validity || (validity[row / 64] >> (row % 64) & 1);
}

/* Append rows [from, from + n) of some vectors; false if there is no memory. */
bool append(const Layout *layout, Chain *chain, const Values *values, idx_t from, idx_t n);

/* Move all rows of a state to the end of another. */
void move_rows(State *to, State *from);

void free_state(State *state);

/* Take the rows of a state for Python, which knows them by a number; 0 if there is no memory. */
int64_t keep_collected(const Layout *layout, State *state);

/* Free what Python has not freed, or ignore a number that is not known. */
EXPORT void spatialq_free(int64_t number);

/* Begin anew in a fork: what its parent's threads held cannot be used. */
void forget_all_collected(void);

#endif
