/* Uses every function of libtrace.h from C99. Traces into the directory given; check_schemas.py
 * looks at it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libtrace/libtrace.h"

static const char kPackage[] =
    "{\"path\": \"\", \"kind\": \"\", \"size_bytes\": 0, \"files\": [], \"kernels\": [],"
    " \"weights\": [], \"weight_size_bytes\": 0, \"shared_weights\": [], \"metadata\": {},"
    " \"extern_kernels\": [], \"code\": []}";

static void Require(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "c_api_test: %s\n", what);
  exit(1);
}

static void EmitCompile(void) {
  const char* reasons[] = {"0/0: size mismatch"};
  const uint32_t frame = libtrace_new_frame();
  libtrace_compile* outer = libtrace_compile_begin(LIBTRACE_HERE, frame, 0, "f", "f.c", 3, NULL, 0);
  Require(outer != NULL, "compile_begin failed");
  libtrace_span* span = libtrace_span_begin(LIBTRACE_HERE, "lower");
  libtrace_span_arg(span, "sizes", "{\"x\": [1, 2.5, \"\\u00e9\"]}");
  libtrace_span_arg(span, "text", "not json");
  libtrace_span_end(span);
  libtrace_context* context = libtrace_context_take();
  libtrace_compile_restart(outer, "graph break");
  libtrace_compile_end(outer);

  libtrace_compile* second =
      libtrace_compile_begin(LIBTRACE_HERE, frame, 1, "f", NULL, 0, reasons, 1);
  libtrace_compile_fail(second, "Unsupported", "no kernel");
  libtrace_compile_end(second);

  libtrace_context_enter(context);
  libtrace_emit(LIBTRACE_HERE, "user_moved", "{}", NULL, 0);
  libtrace_context_leave(context);
  libtrace_context_free(context);
}

static void EmitCacheEvents(void) {
  char line[128];
  const size_t size = libtrace_component_line("model", "resnet", "weights", 7, line, sizeof line);
  Require(size == strlen(line), "component_line has the wrong size");
  Require(libtrace_component_line("model", "resnet", "weights", 7, line, 10) == size &&
              strlen(line) == 9,
          "component_line does not truncate");
  libtrace_component_line("model", "resnet", "weights", 7, line, sizeof line);
  const char* components[1];
  components[0] = line;
  libtrace_cache_event event;
  memset(&event, 0, sizeof event);
  event.struct_size = sizeof event;
  event.layer = "c_program";
  event.state = LIBTRACE_CACHE_MISS;
  event.key = "caaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
  event.components = components;
  event.component_count = 1;
  event.status_detailed = "full_miss";
  event.time_ns = 1234;
  libtrace_emit_cache_event(LIBTRACE_HERE, &event);
  event.state = LIBTRACE_CACHE_BYPASS;
  event.status_detailed = NULL;
  event.bypass_reason = "frozen";
  libtrace_emit_cache_event(LIBTRACE_HERE, &event);
  /* As a program that was compiled before the later members existed. */
  event.struct_size = offsetof(libtrace_cache_event, key);
  event.state = LIBTRACE_CACHE_DISABLED;
  libtrace_emit_cache_event(LIBTRACE_HERE, &event);
}

static void EmitWhatCameWithVersion2(void) {
  libtrace_frame frames[2] = {{sizeof frames[0], "main.py", "main", 3, "step(x)"},
                              {sizeof frames[0], "step.py", "step", 0, NULL}};
  libtrace_stack* stack = libtrace_stack_begin(frames, 2);
  libtrace_emit(LIBTRACE_HERE, "user_hosted", "{}", NULL, 0);
  libtrace_stack_end(stack);

  libtrace_compile_description description;
  memset(&description, 0, sizeof description);
  description.struct_size = sizeof description;
  description.frame_id = libtrace_new_frame();
  description.function = "described";
  description.callers = frames;
  description.caller_count = 2;
  libtrace_compile* compile = libtrace_compile_begin_described(LIBTRACE_HERE, &description);
  Require(compile != NULL, "compile_begin_described failed");
  Require(libtrace_compile_metric(compile, "graph_op_count", "7"), "a metric is refused");
  Require(libtrace_compile_metric(compile, "joint_graph_pass_time_us", "12"),
          "a metric is refused");
  Require(!libtrace_compile_metric(compile, "no_such_member", "7"), "an unknown metric is taken");
  Require(!libtrace_compile_metric(compile, "guard_count", "{"), "a broken metric is taken");
  libtrace_emit_output_graph(LIBTRACE_HERE, "{\"x\": [4, \"s0\"]}", "graph", 5);
  libtrace_emit_graph_dump(LIBTRACE_HERE, "user_graph", "cpp", NULL, "int x;", 6);
  libtrace_emit_output_code(LIBTRACE_HERE, "/tmp/k.cc", "int y;", 6);
  libtrace_provenance* provenance = libtrace_provenance_new();
  libtrace_provenance_pre_to_post(provenance, "matmul", "mm");
  libtrace_provenance_kernel_to_post(provenance, "fused_mm", 1, "mm");
  libtrace_provenance_stack_trace(provenance, "fused_mm", 1,
                                  "  File \"m.py\", line 8, in f\n    x @ y\n");
  libtrace_provenance_emit(LIBTRACE_HERE, provenance);
  libtrace_provenance_free(provenance);
  libtrace_run_digest* digest = libtrace_run_digest_new("forward", 3);
  libtrace_run_digest_kernel(digest, "fused_mm", "int y;", 6);
  libtrace_run_digest_choice(digest, "mm(4, 8)", "tile_16");
  libtrace_run_digest_output(digest, "0", "float32[1]", "\0\0\200?", 4);
  libtrace_run_digest_emit(LIBTRACE_HERE, digest);
  libtrace_run_digest_free(digest);
  const char* ops[2] = {"torch.ops._c10d_functional.all_reduce_.default", NULL};
  libtrace_emit_collective_schedule(LIBTRACE_HERE, ops, 2);
  libtrace_compile_end(compile);

  const int64_t shape[2] = {4, 8};
  libtrace_collective issued;
  memset(&issued, 0, sizeof issued);
  issued.struct_size = sizeof issued;
  issued.op = "all_reduce";
  issued.process_group = "0";
  issued.group_size = 4;
  issued.dtype = "float32";
  issued.reduce_op = "sum";
  issued.input_shape = shape;
  issued.input_rank = 2;
  issued.start_us = -1;
  issued.duration_ns = -1;
  issued.collective_seq_id = 1;
  libtrace_emit_collective_log(LIBTRACE_HERE, &issued, 1);
  libtrace_emit_collective_state(LIBTRACE_HERE, "0", 0, 2500);
  /* As a program that was compiled before the last members existed. */
  issued.struct_size = offsetof(libtrace_collective, collective_seq_id);
  issued.sequence_number = 1;
  issued.p2p_seq_id = 7;
  libtrace_emit_collective_log(LIBTRACE_HERE, &issued, 1);

  libtrace_execution_order* order = libtrace_execution_order_new(LIBTRACE_HERE, 1);
  libtrace_execution_order_ran(order, description.frame_id, 0, "forward", 1000);
  libtrace_execution_order_ran(order, -1, 0, NULL, -1);
  libtrace_execution_order_free(order);
}

static int error_count = 0;
static void OnError(void* user, const char* kind, const char* message) {
  (void)message;
  if (user == &error_count && strcmp(kind, "bad_record_key") == 0) ++error_count;
}

int main(int argc, char** argv) {
  Require(argc == 2, "usage: c_api_test DIRECTORY");
  Require(libtrace_abi_version() == LIBTRACE_ABI_VERSION, "header and library differ");
  Require(!libtrace_enabled(), "on before start");
  Require(libtrace_span_begin(NULL, "off") == NULL, "a span while off");
  Require(libtrace_run_digest_new("off", 0) == NULL, "a digest while off");

  libtrace_options options;
  libtrace_options_init(&options);
  options.directory = argv[1];
  options.rank = 2;
  options.async = LIBTRACE_ASYNC_BLOCK;
  options.on_error = OnError;
  options.on_error_user = &error_count;
  Require(libtrace_start(&options) && libtrace_enabled(), "start failed");
  EmitCompile();
  EmitCacheEvents();
  EmitWhatCameWithVersion2();
  libtrace_emit(LIBTRACE_HERE, "user_payload", "broken {", "a\nb", 3);
  libtrace_emit(NULL, NULL, NULL, NULL, 0); /* counted as lost */
  libtrace_emit_artifact(NULL, "libtrace_package", "json", kPackage, strlen(kPackage));
  libtrace_instant(LIBTRACE_HERE, "instant", "{\"a\": 1}");
  libtrace_set_rank(-1);
  libtrace_instant(LIBTRACE_HERE, "instant", "[]");
  Require(libtrace_flush(10000), "flush timed out");
  libtrace_stats stats;
  stats.struct_size = sizeof stats;
  libtrace_get_stats(&stats);
  Require(stats.record_count > 10 && stats.lost_record_count == 1, "stats are wrong");
  libtrace_stop();
  Require(!libtrace_enabled(), "on after stop");
  Require(error_count == 1, "on_error was not called once");
  libtrace_compile_end(NULL);
  libtrace_compile_metric(NULL, NULL, NULL);
  libtrace_provenance_free(NULL);
  libtrace_run_digest_output(NULL, NULL, NULL, NULL, 0);
  libtrace_run_digest_free(NULL);
  libtrace_execution_order_free(NULL);
  libtrace_stack_end(NULL);
  libtrace_span_end(NULL);
  libtrace_context_free(NULL);
  return 0;
}
