/* The part of DuckDB's C API for extensions (version v1.2.0) that the extension uses.

   DuckDB hands an extension one table of function pointers, whose order is fixed for a version of
   the API and only grows. Here each function has its position in that table;
   tests/database/test_native_extension.py calls every one of them. */
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

enum { API_SIZE = 277 };
extern const void *api[API_SIZE]; /* copied when the extension is loaded: it does not stay */

#define AT(position, result, ...) ((result(*)(__VA_ARGS__))api[position])

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

#define duckdb_connect AT(3, int, Handle, Handle *)
#define duckdb_disconnect AT(6, void, Handle *)
#define duckdb_destroy_value AT(92, void, Handle *)
#define duckdb_create_varchar AT(93, Handle, const char *)
#define duckdb_get_int64 AT(125, int64_t, Handle)
#define duckdb_create_logical_type AT(156, Handle, int)
#define duckdb_create_list_type AT(159, Handle, Handle)
#define duckdb_create_struct_type AT(163, Handle, Handle *, const char **, idx_t)
#define duckdb_destroy_logical_type AT(184, void, Handle *)
#define duckdb_data_chunk_get_vector AT(190, Handle, Handle, idx_t)
#define duckdb_data_chunk_get_size AT(191, idx_t, Handle)
#define duckdb_data_chunk_set_size AT(192, void, Handle, idx_t)
#define duckdb_vector_get_data AT(194, void *, Handle)
#define duckdb_vector_get_validity AT(195, uint64_t *, Handle)
#define duckdb_vector_ensure_validity_writable AT(196, void, Handle)
#define duckdb_vector_assign_string_element_len AT(198, void, Handle, idx_t, const char *, idx_t)
#define duckdb_list_vector_get_child AT(199, Handle, Handle)
#define duckdb_list_vector_get_size AT(200, idx_t, Handle)
#define duckdb_list_vector_set_size AT(201, int, Handle, idx_t)
#define duckdb_list_vector_reserve AT(202, int, Handle, idx_t)
#define duckdb_struct_vector_get_child AT(203, Handle, Handle, idx_t)
#define duckdb_create_aggregate_function AT(226, Handle, void)
#define duckdb_destroy_aggregate_function AT(227, void, Handle *)
#define duckdb_aggregate_function_set_name AT(228, void, Handle, const char *)
#define duckdb_aggregate_function_add_parameter AT(229, void, Handle, Handle)
#define duckdb_aggregate_function_set_return_type AT(230, void, Handle, Handle)
#define duckdb_aggregate_function_set_functions \
    AT(231, void, Handle, StateSize, StateInit, StateUpdate, StateCombine, StateFinalize)
#define duckdb_aggregate_function_set_destructor AT(232, void, Handle, StateDestroy)
#define duckdb_register_aggregate_function AT(233, int, Handle, Handle)
#define duckdb_aggregate_function_set_special_handling AT(234, void, Handle)
#define duckdb_aggregate_function_set_extra_info AT(235, void, Handle, void *, Destroy)
#define duckdb_aggregate_function_get_extra_info AT(236, void *, Handle)
#define duckdb_aggregate_function_set_error AT(237, void, Handle, const char *)
#define duckdb_create_table_function AT(242, Handle, void)
#define duckdb_destroy_table_function AT(243, void, Handle *)
#define duckdb_table_function_set_name AT(244, void, Handle, const char *)
#define duckdb_table_function_add_parameter AT(245, void, Handle, Handle)
#define duckdb_table_function_set_extra_info AT(247, void, Handle, void *, Destroy)
#define duckdb_table_function_set_bind AT(248, void, Handle, OnInfo)
#define duckdb_table_function_set_init AT(249, void, Handle, OnInfo)
#define duckdb_table_function_set_local_init AT(250, void, Handle, OnInfo)
#define duckdb_table_function_set_function AT(251, void, Handle, OnChunk)
#define duckdb_table_function_supports_projection_pushdown AT(252, void, Handle, bool)
#define duckdb_register_table_function AT(253, int, Handle, Handle)
#define duckdb_bind_get_extra_info AT(254, void *, Handle)
#define duckdb_bind_add_result_column AT(255, void, Handle, const char *, Handle)
#define duckdb_bind_get_parameter AT(257, Handle, Handle, idx_t)
#define duckdb_bind_set_bind_data AT(259, void, Handle, void *, Destroy)
#define duckdb_bind_set_cardinality AT(260, void, Handle, idx_t, bool)
#define duckdb_bind_set_error AT(261, void, Handle, const char *)
#define duckdb_init_get_bind_data AT(263, void *, Handle)
#define duckdb_init_set_init_data AT(264, void, Handle, void *, Destroy)
#define duckdb_init_get_column_count AT(265, idx_t, Handle)
#define duckdb_init_get_column_index AT(266, idx_t, Handle, idx_t)
#define duckdb_init_set_max_threads AT(267, void, Handle, idx_t)
#define duckdb_init_set_error AT(268, void, Handle, const char *)
#define duckdb_function_get_init_data AT(271, void *, Handle)
#define duckdb_function_get_local_init_data AT(272, void *, Handle)
#define duckdb_function_set_error AT(273, void, Handle, const char *)
#define duckdb_add_replacement_scan AT(274, void, Handle, OnTable, void *, Destroy)
#define duckdb_replacement_scan_set_function_name AT(275, void, Handle, const char *)
#define duckdb_replacement_scan_add_parameter AT(276, void, Handle, Handle)

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
