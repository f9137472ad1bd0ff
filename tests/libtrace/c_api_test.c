/* Uses every function of libtrace.h from C99. Traces into the directory given; check_schemas.py looks at it. */
#include "libtrace/libtrace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char kPackage[] =
    "{\"path\": \"\", \"kind\": \"\", \"size_bytes\": 0, \"files\": [], \"kernels\": [],"
    " \"weights\": [], \"weight_size_bytes\": 0, \"shared_weights\": [], \"metadata\": {}}";

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

int main(int argc, char** argv) {
  Require(argc == 2, "usage: c_api_test DIRECTORY");
  Require(libtrace_abi_version() == LIBTRACE_ABI_VERSION, "header and library differ");
  Require(!libtrace_enabled(), "on before start");
  Require(libtrace_span_begin(NULL, "off") == NULL, "a span while off");

  libtrace_options options;
  libtrace_options_init(&options);
  options.directory = argv[1];
  options.rank = 2;
  options.async = LIBTRACE_ASYNC_BLOCK;
  Require(libtrace_start(&options) && libtrace_enabled(), "start failed");
  EmitCompile();
  EmitCacheEvents();
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
  libtrace_compile_end(NULL);
  libtrace_span_end(NULL);
  libtrace_context_free(NULL);
  return 0;
}
