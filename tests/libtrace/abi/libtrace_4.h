/* libtrace for C, and for every language that can call C.
 *
 * The ABI is stable: functions and struct members are only ever added, structs begin with their own
 * size, and handles are opaque. All functions may be called from any thread. None throws, aborts or
 * keeps pointers to what it is given, unless said otherwise. A record that cannot be written is
 * counted (libtrace_get_stats), and its function returns as always. Texts are UTF-8 and end with
 * NUL; broken UTF-8 is replaced, NULL is "". Functions that end in `_free` or `_end` take the handle
 * back; they, and all others that take a handle, ignore NULL.
 *
 * Tracing starts by itself if the environment says so (TORCH_TRACE=<directory>; all variables are
 * in libtrace/options.h), or by libtrace_start. No function is async-signal-safe. What each
 * function emits is described in the C++ headers: libtrace/trace.h, compile.h, chromium_event.h,
 * artifacts/cache_event.h.
 */
#ifndef LIBTRACE_LIBTRACE_H_
#define LIBTRACE_LIBTRACE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Grows whenever something is added. */
#define LIBTRACE_ABI_VERSION 4
uint32_t libtrace_abi_version(void);
const char* libtrace_version(void); /* of the library, "0.1.0"; static */

/* ---- Switching on and off ---- */

enum { LIBTRACE_ASYNC_OFF = 0, LIBTRACE_ASYNC_BLOCK = 1, LIBTRACE_ASYNC_DROP = 2 };

typedef struct libtrace_options {
  size_t struct_size;              /* sizeof(libtrace_options) */
  const char* directory;           /* required */
  int64_t rank;                    /* -1 = from RANK, or none */
  int32_t detail;                  /* not 0: detail records too */
  int32_t async;                   /* LIBTRACE_ASYNC_… */
  uint64_t queue_size_bytes;       /* 0 = default, as below */
  uint64_t rotate_size_bytes;      /* 0 = never */
  uint64_t budget_size_bytes;      /* 0 = unlimited */
  uint64_t max_payload_size_bytes; /* 0 = default */
  /* Since version 2. Called once per kind of loss with its name (`queue_full`, …) and one sentence,
   * from any thread, never while a lock of the library is held; must not unwind. NULL = one line on
   * stderr. */
  void (*on_error)(void* user, const char* kind, const char* message);
  void* on_error_user;
} libtrace_options;

/* Fills in the defaults and struct_size. In C a macro passes the size that the caller knows;
 * without it (through dlopen, say) libtrace_options_init leaves what came with version 2 unset, and
 * libtrace_options_init_sized takes the size. */
void libtrace_options_init(libtrace_options* options);
void libtrace_options_init_sized(libtrace_options* options, size_t struct_size);
#define libtrace_options_init(options) \
  libtrace_options_init_sized((options), sizeof(libtrace_options))
/* 1 if tracing is on afterwards. */
int libtrace_start(const libtrace_options* options);
void libtrace_stop(void);
/* Cheap: ask before building something expensive. */
int libtrace_enabled(void);
/* 1 if everything emitted before is written. */
int libtrace_flush(uint32_t timeout_ms);
/* -1 = no rank. */
void libtrace_set_rank(int64_t rank);

typedef struct libtrace_stats {
  size_t struct_size; /* sizeof(libtrace_stats), set by the caller */
  uint64_t record_count;
  uint64_t size_bytes;
  uint64_t lost_record_count;
} libtrace_stats;
void libtrace_get_stats(libtrace_stats* stats);

/* ---- Where a record comes from ---- */

typedef struct libtrace_site {
  const char* file;
  const char* function;
  uint32_t line;
} libtrace_site;

#define LIBTRACE_HERE (&(const libtrace_site){__FILE__, __func__, __LINE__}) /* C only */

/* ---- Records ---- */

/* `metadata` is the JSON value of the record key (NULL = {}); text that is not JSON is written as a
 * string. `payload` NULL = none; else `payload_size` bytes. */
void libtrace_emit(const libtrace_site* site, const char* key, const char* metadata,
                   const void* payload, size_t payload_size);
/* `encoding` is "json" or "string". */
void libtrace_emit_artifact(const libtrace_site* site, const char* name, const char* encoding,
                            const void* payload, size_t payload_size);
/* `args` is a JSON object or NULL. */
void libtrace_instant(const libtrace_site* site, const char* name, const char* args);

/* ---- Compiles ----
 * A compile belongs to the thread that began it: end it there, inner ones first. One that is ended
 * on another thread is written, but the first thread's records still carry its ids; its memory is
 * not given back. */

typedef struct libtrace_compile libtrace_compile;

/* A new frame id: once per piece of the program that is compiled. */
uint32_t libtrace_new_frame(void);

/* The `frame_compile_id`-th compile (0, 1, …) of `frame_id`. `recompile_reasons`, most recent
 * first, may be NULL. Returns NULL on failure, which every function below takes. The texts of
 * `site` must live until the compile ends. */
libtrace_compile* libtrace_compile_begin(const libtrace_site* site, uint32_t frame_id,
                                         uint32_t frame_compile_id, const char* function,
                                         const char* file, uint32_t line,
                                         const char* const* recompile_reasons,
                                         size_t recompile_reason_count);
/* The same with the frames that led here, outermost first; see below. Since version 2. */
typedef struct libtrace_frame {
  size_t struct_size; /* sizeof(libtrace_frame), also the distance between frames of an array */
  const char* file;
  const char* function;
  uint32_t line;           /* 0 = unknown */
  const char* source_text; /* of that line; NULL = unknown */
} libtrace_frame;
typedef struct libtrace_compile_description {
  size_t struct_size; /* sizeof(libtrace_compile_description) */
  uint32_t frame_id;
  uint32_t frame_compile_id;
  const char* function;
  const char* file;
  uint32_t line; /* 0 = unknown */
  const libtrace_frame* callers;
  size_t caller_count;
  const char* const* recompile_reasons;
  size_t recompile_reason_count;
} libtrace_compile_description;
libtrace_compile* libtrace_compile_begin_described(const libtrace_site* site,
                                                   const libtrace_compile_description* description);
/* Sets a member of compilation_metrics, by PyTorch's name (`graph_op_count`, `guard_count`,
 * `joint_graph_pass_time_us`, …), to a JSON value. 0 if there is no member of that name or `json`
 * is not JSON; 1, unchecked, when tracing is off. Since version 2. */
int libtrace_compile_metric(libtrace_compile* compile, const char* name, const char* json);

void libtrace_compile_restart(libtrace_compile* compile, const char* reason);
void libtrace_compile_fail(libtrace_compile* compile, const char* type, const char* reason);
void libtrace_compile_end(libtrace_compile* compile);

/* The compile that this thread is in, to be entered on another thread; NULL on failure. While it is
 * entered, enter, leave and free do nothing on any other thread. */
typedef struct libtrace_context libtrace_context;
libtrace_context* libtrace_context_take(void);
void libtrace_context_enter(libtrace_context* context); /* at most once at a time */
void libtrace_context_leave(libtrace_context* context); /* on the thread that entered */
void libtrace_context_free(libtrace_context* context);

/* ---- Timed spans: begin and end on one thread, inner ones first ---- */

typedef struct libtrace_span libtrace_span;
/* NULL when tracing is off. The texts of `site` must live until the end of the span. */
libtrace_span* libtrace_span_begin(const libtrace_site* site, const char* name);
void libtrace_span_arg(libtrace_span* span, const char* name, const char* json);
void libtrace_span_end(libtrace_span* span);

/* ---- Frames of the caller's own (since version 2) ----
 * Until its end, records that this thread emits outside a compile carry these frames instead of
 * their call site. Begin and end on one thread, inner ones first; an end on another thread does
 * nothing. */

typedef struct libtrace_stack libtrace_stack;
libtrace_stack* libtrace_stack_begin(const libtrace_frame* frames, size_t frame_count);
void libtrace_stack_end(libtrace_stack* stack);

/* ---- Graphs and generated code (since version 2); texts of `text_size` bytes ---- */

/* `type` is the language of the text; `filename` NULL = in no file. */
void libtrace_emit_graph_dump(const libtrace_site* site, const char* name, const char* type,
                              const char* filename, const char* text, size_t text_size);
/* `sizes` is a JSON object: node name to a list of sizes, numbers or texts. */
void libtrace_emit_output_graph(const libtrace_site* site, const char* sizes, const char* text,
                                size_t text_size);
void libtrace_emit_output_code(const libtrace_site* site, const char* file_path, const char* code,
                               size_t code_size);

/* ---- Provenance (since version 2): from kernels to nodes and source lines. Not thread-safe. ----
 * `debug_handle` numbers the calls of one kernel: 1, 2, … per graph. */

typedef struct libtrace_provenance libtrace_provenance;
libtrace_provenance* libtrace_provenance_new(void); /* NULL: no memory */
void libtrace_provenance_pre_to_post(libtrace_provenance* provenance, const char* pre_grad_node,
                                     const char* post_grad_node);
void libtrace_provenance_kernel_to_post(libtrace_provenance* provenance, const char* kernel,
                                        uint32_t debug_handle, const char* post_grad_node);
/* `traceback` as Python prints one: `  File "m.py", line 8, in f\n    y = x + 1\n`. */
void libtrace_provenance_stack_trace(libtrace_provenance* provenance, const char* kernel,
                                     uint32_t debug_handle, const char* traceback);
void libtrace_provenance_emit(const libtrace_site* site, const libtrace_provenance* provenance);
void libtrace_provenance_free(libtrace_provenance* provenance);

/* ---- Hashes of one run of a graph (since version 3), which `tlparse diff` compares with those of
 * another run of the program; see artifacts/run_digest.h. Not thread-safe. ---- */

typedef struct libtrace_run_digest libtrace_run_digest;
/* `call` counts the runs of the graph from 0, those that are not hashed too. NULL when tracing is
 * off. */
libtrace_run_digest* libtrace_run_digest_new(const char* graph, uint64_t call);
void libtrace_run_digest_kernel(libtrace_run_digest* digest, const char* name, const char* code,
                                size_t code_size);
void libtrace_run_digest_choice(libtrace_run_digest* digest, const char* name, const char* choice);
/* `name` is the position of the output, `type` its type and shape: `float32[2, 3]`. */
void libtrace_run_digest_output(libtrace_run_digest* digest, const char* name, const char* type,
                                const void* bytes, size_t size_bytes);
void libtrace_run_digest_emit(const libtrace_site* site, const libtrace_run_digest* digest);
void libtrace_run_digest_free(libtrace_run_digest* digest);

/* ---- The order in which graphs ran (since version 2). Thread-safe. ---- */

typedef struct libtrace_execution_order libtrace_execution_order;
/* `per_execution` not 0: each run also gives a record at once. The texts of `site` must live until
 * libtrace_execution_order_free. */
libtrace_execution_order* libtrace_execution_order_new(const libtrace_site* site,
                                                       int per_execution);
/* frame_id -1: a graph whose compile is unknown. duration_ns -1: unknown. `label` may be NULL. */
void libtrace_execution_order_ran(libtrace_execution_order* order, int64_t frame_id,
                                  uint32_t frame_compile_id, const char* label,
                                  int64_t duration_ns);
void libtrace_execution_order_free(libtrace_execution_order* order); /* emits the list */

/* ---- Collectives (since version 2) ---- */

/* Names of a graph's collectives as it will issue them; NULL = one without a name. */
void libtrace_emit_collective_schedule(const libtrace_site* site, const char* const* ops,
                                       size_t op_count);

typedef struct libtrace_collective {
  size_t struct_size;       /* sizeof(libtrace_collective), also the distance in an array */
  uint64_t sequence_number; /* within the process group, from 0 */
  const char* op;           /* all_reduce, … */
  const char* process_group;
  uint32_t group_size;         /* 0 = unknown */
  const char* backend;         /* NULL = unknown */
  const char* dtype;           /* NULL = none */
  const char* reduce_op;       /* NULL = none */
  const int64_t* input_shape;  /* of its one input; NULL = none */
  size_t input_rank;           /* number of dimensions */
  const int64_t* output_shape; /* of its one output; NULL = none */
  size_t output_rank;
  int64_t start_us;    /* since the epoch; -1 = unknown */
  int64_t duration_ns; /* -1 = not seen to complete */
  /* Since version 4. Within the group from 1, as c10d's flight recorder counts: of a collective, or
   * of a send or receive. 0 = unknown. */
  uint64_t collective_seq_id;
  uint64_t p2p_seq_id;
} libtrace_collective;
/* What this rank issued, in order. */
void libtrace_emit_collective_log(const libtrace_site* site, const libtrace_collective* collectives,
                                  size_t collective_count);
/* The completion of a collective that was written when it was issued. Since version 4. */
void libtrace_emit_collective_state(const libtrace_site* site, const char* process_group,
                                    uint64_t sequence_number, int64_t duration_ns);

/* ---- Cache events ---- */

enum {
  LIBTRACE_CACHE_HIT = 0,
  LIBTRACE_CACHE_MISS = 1,
  LIBTRACE_CACHE_BYPASS = 2,
  LIBTRACE_CACHE_DISABLED = 3
};

typedef struct libtrace_cache_event {
  size_t struct_size; /* sizeof(libtrace_cache_event) */
  const char* layer;  /* "acme_kernel" gives acme_kernel_cache_hit */
  int32_t state;      /* LIBTRACE_CACHE_… */
  const char* key;
  const char* const* components; /* lines of libtrace_component_line */
  size_t component_count;
  const char* status_detailed; /* hit, full_miss, guard_miss; NULL = none */
  const char* guard;           /* NULL = none */
  const char* bypass_reason;   /* of a bypass */
  int64_t time_ns;             /* saved (hit) or taken (miss); -1 = unknown */
} libtrace_cache_event;
void libtrace_emit_cache_event(const libtrace_site* site, const libtrace_cache_event* event);

/* Writes the component line `[51 characters] name: text` of `content` and a NUL into `line` as far
 * as `line_size` allows; returns its whole length without the NUL. */
size_t libtrace_component_line(const char* name, const char* text, const void* content,
                               size_t content_size, char* line, size_t line_size);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* LIBTRACE_LIBTRACE_H_ */
