/* The part of DuckDB's C API for extensions (version v1.2.0) that the extension uses.

   DuckDB hands an extension one table of function pointers, whose order is fixed for a version of
   the API and only grows. Here each function has its position in that table, which is compared with
   its name when the extension is loaded. */
#ifndef SPATIALQ_DUCKDB_API_H
#define SPATIALQ_DUCKDB_API_H

#ifdef __linux__
#define _GNU_SOURCE /* for platform.h: pthread_cond_clockwait */
#endif

#include <stdbool.h>
#include <stdint.h>

#define API_VERSION "v1.2.0"

typedef uint64_t idx_t;

/* What an extension is handed when it is loaded. */
struct Access {
    void (*set_error)(void *info, const char *error);
    void **(*get_database)(void *info);
    const void *(*get_api)(void *info, const char *version);
};

/* Logical types, as duckdb_type numbers them. */
enum {
    TYPE_BOOLEAN = 1, TYPE_TINYINT, TYPE_SMALLINT, TYPE_INTEGER, TYPE_BIGINT,
    TYPE_UTINYINT, TYPE_USMALLINT, TYPE_UINTEGER, TYPE_UBIGINT, TYPE_FLOAT, TYPE_DOUBLE,
    TYPE_VARCHAR = 17, TYPE_BLOB = 18, TYPE_LIST = 24, TYPE_STRUCT = 25, TYPE_GEOMETRY = 40
};

/* A text or blob in a vector: up to 12 bytes are held in place. */
typedef struct {
    uint32_t length;
    char prefix[4];
    const char *data;
} String;

static inline const char *string_bytes(const String *s) {
    return s->length <= 12 ? s->prefix : s->data;
}

typedef struct {
    uint64_t offset, length;
} ListEntry;

typedef void *Handle; /* of an object of DuckDB */
typedef void (*Destroy)(void *);
typedef void (*OnInfo)(Handle);
typedef void (*OnChunk)(Handle, Handle);
typedef void (*OnTable)(Handle, const char *, void *);
typedef idx_t (*StateSize)(Handle);
typedef void (*StateInit)(Handle, void *);
typedef void (*StateUpdate)(Handle, Handle, void **);
typedef void (*StateCombine)(Handle, void **, void **, idx_t);
typedef void (*StateFinalize)(Handle, void **, Handle, idx_t, idx_t);
typedef void (*StateDestroy)(void **, idx_t);

/* F(position, result, name, arguments...) for each function that is used. */
#define FUNCTIONS(F) \
    F(3, int, duckdb_connect, Handle, Handle *) \
    F(6, void, duckdb_disconnect, Handle *) \
    F(92, void, duckdb_destroy_value, Handle *) \
    F(93, Handle, duckdb_create_varchar, const char *) \
    F(125, int64_t, duckdb_get_int64, Handle) \
    F(156, Handle, duckdb_create_logical_type, int) \
    F(159, Handle, duckdb_create_list_type, Handle) \
    F(163, Handle, duckdb_create_struct_type, Handle *, const char **, idx_t) \
    F(184, void, duckdb_destroy_logical_type, Handle *) \
    F(190, Handle, duckdb_data_chunk_get_vector, Handle, idx_t) \
    F(191, idx_t, duckdb_data_chunk_get_size, Handle) \
    F(192, void, duckdb_data_chunk_set_size, Handle, idx_t) \
    F(194, void *, duckdb_vector_get_data, Handle) \
    F(195, uint64_t *, duckdb_vector_get_validity, Handle) \
    F(196, void, duckdb_vector_ensure_validity_writable, Handle) \
    F(198, void, duckdb_vector_assign_string_element_len, Handle, idx_t, const char *, idx_t) \
    F(199, Handle, duckdb_list_vector_get_child, Handle) \
    F(200, idx_t, duckdb_list_vector_get_size, Handle) \
    F(201, int, duckdb_list_vector_set_size, Handle, idx_t) \
    F(202, int, duckdb_list_vector_reserve, Handle, idx_t) \
    F(203, Handle, duckdb_struct_vector_get_child, Handle, idx_t) \
    F(226, Handle, duckdb_create_aggregate_function, void) \
    F(227, void, duckdb_destroy_aggregate_function, Handle *) \
    F(228, void, duckdb_aggregate_function_set_name, Handle, const char *) \
    F(229, void, duckdb_aggregate_function_add_parameter, Handle, Handle) \
    F(230, void, duckdb_aggregate_function_set_return_type, Handle, Handle) \
    F(231, void, duckdb_aggregate_function_set_functions, \
      Handle, StateSize, StateInit, StateUpdate, StateCombine, StateFinalize) \
    F(232, void, duckdb_aggregate_function_set_destructor, Handle, StateDestroy) \
    F(233, int, duckdb_register_aggregate_function, Handle, Handle) \
    F(234, void, duckdb_aggregate_function_set_special_handling, Handle) \
    F(235, void, duckdb_aggregate_function_set_extra_info, Handle, void *, Destroy) \
    F(236, void *, duckdb_aggregate_function_get_extra_info, Handle) \
    F(237, void, duckdb_aggregate_function_set_error, Handle, const char *) \
    F(242, Handle, duckdb_create_table_function, void) \
    F(243, void, duckdb_destroy_table_function, Handle *) \
    F(244, void, duckdb_table_function_set_name, Handle, const char *) \
    F(245, void, duckdb_table_function_add_parameter, Handle, Handle) \
    F(247, void, duckdb_table_function_set_extra_info, Handle, void *, Destroy) \
    F(248, void, duckdb_table_function_set_bind, Handle, OnInfo) \
    F(249, void, duckdb_table_function_set_init, Handle, OnInfo) \
    F(250, void, duckdb_table_function_set_local_init, Handle, OnInfo) \
    F(251, void, duckdb_table_function_set_function, Handle, OnChunk) \
    F(252, void, duckdb_table_function_supports_projection_pushdown, Handle, bool) \
    F(253, int, duckdb_register_table_function, Handle, Handle) \
    F(254, void *, duckdb_bind_get_extra_info, Handle) \
    F(255, void, duckdb_bind_add_result_column, Handle, const char *, Handle) \
    F(257, Handle, duckdb_bind_get_parameter, Handle, idx_t) \
    F(259, void, duckdb_bind_set_bind_data, Handle, void *, Destroy) \
    F(260, void, duckdb_bind_set_cardinality, Handle, idx_t, bool) \
    F(261, void, duckdb_bind_set_error, Handle, const char *) \
    F(263, void *, duckdb_init_get_bind_data, Handle) \
    F(264, void, duckdb_init_set_init_data, Handle, void *, Destroy) \
    F(265, idx_t, duckdb_init_get_column_count, Handle) \
    F(266, idx_t, duckdb_init_get_column_index, Handle, idx_t) \
    F(267, void, duckdb_init_set_max_threads, Handle, idx_t) \
    F(268, void, duckdb_init_set_error, Handle, const char *) \
    F(271, void *, duckdb_function_get_init_data, Handle) \
    F(272, void *, duckdb_function_get_local_init_data, Handle) \
    F(273, void, duckdb_function_set_error, Handle, const char *) \
    F(274, void, duckdb_add_replacement_scan, Handle, OnTable, void *, Destroy) \
    F(275, void, duckdb_replacement_scan_set_function_name, Handle, const char *) \
    F(276, void, duckdb_replacement_scan_add_parameter, Handle, Handle)

#define DECLARE(position, result, name, ...) extern result (*name)(__VA_ARGS__);
FUNCTIONS(DECLARE)

/* The Arrow C data interface, in which results arrive (arrow.apache.org, "The Arrow C data
   interface"): two structures whose layout is part of the standard. */
struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

#endif
