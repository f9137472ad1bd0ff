/* A trace from C: a compile with a pass, an artifact of the program's own, and what was lost.
 *
 *   cc first_trace.c $(pkg-config --cflags --libs torchtrace) -o first_trace
 *   TORCH_TRACE=/tmp/trace ./first_trace && tlparse /tmp/trace
 */
#include <libtrace/libtrace.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  const uint32_t frame = libtrace_new_frame();
  libtrace_compile* compile =
      libtrace_compile_begin(LIBTRACE_HERE, frame, 0, "forward", "model.c", 12, NULL, 0);
  libtrace_span* pass = libtrace_span_begin(LIBTRACE_HERE, "lower");
  libtrace_span_arg(pass, "nodes", "42");
  if (libtrace_enabled()) {
    const char* const text = "{\"tiles\": [8, 16]}";
    libtrace_emit_artifact(LIBTRACE_HERE, "acme_plan", "json", text, strlen(text));
  }
  libtrace_span_end(pass);
  libtrace_compile_end(compile);

  libtrace_stats stats = {.struct_size = sizeof stats};
  libtrace_get_stats(&stats);
  printf("%llu records written, %llu lost\n", (unsigned long long)stats.record_count,
         (unsigned long long)stats.lost_record_count);
  return stats.lost_record_count != 0;
}
