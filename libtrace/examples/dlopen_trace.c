/* A program that traces if libtorchtrace is there and runs without it if not, as programs in Rust
 * or Go do: the library is opened at run time, and every function is looked up by its name. Only
 * the C API can be used so; its names stay.
 *
 *   cc dlopen_trace.c -ldl -o dlopen_trace
 *   TORCH_TRACE=/tmp/trace ./dlopen_trace && tlparse /tmp/trace
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct {
  const char* file;
  const char* function;
  uint32_t line;
} Site;

static void* library;

/* ISO C has no conversion between pointers to objects and to functions. */
static void Find(const char* name, void* function) {
  void* const found = library == NULL ? NULL : dlsym(library, name);
  memcpy(function, &found, sizeof found);
}

int main(void) {
  uint32_t (*abi_version)(void);
  uint32_t (*new_frame)(void);
  void* (*compile_begin)(const Site*, uint32_t, uint32_t, const char*, const char*, uint32_t,
                         const char* const*, size_t);
  void (*compile_end)(void*);
  library = dlopen("libtorchtrace.so.0", RTLD_NOW | RTLD_LOCAL);
  Find("libtrace_abi_version", &abi_version);
  Find("libtrace_new_frame", &new_frame);
  Find("libtrace_compile_begin", &compile_begin);
  Find("libtrace_compile_end", &compile_end);
  if (abi_version == NULL || abi_version() < 1) {
    puts("no libtorchtrace here: nothing is traced");
    return 0;
  }
  const Site site = {__FILE__, "main", __LINE__};
  void* const compile = compile_begin(&site, new_frame(), 0, "forward", "model.rs", 12, NULL, 0);
  compile_end(compile);
  dlclose(library); /* it stays loaded all the same: its records may still be on their way */
  return 0;
}
