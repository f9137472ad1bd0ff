// For the file that is given to others: libstdc++'s handler of an exception that nothing catches brings a demangler of 40 kB.
#include <cstdio>
#include <cstdlib>
#include <exception>

namespace __gnu_cxx {

// In place of libstdc++'s (ext/vterminate.cc), which is linked only where nobody defines it.
void __verbose_terminate_handler() {
  try {
    if (std::current_exception()) throw;
    std::fputs("tlparse: terminated without an exception\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tlparse: nothing caught this exception: %s\n", error.what());
  } catch (...) {
    std::fputs("tlparse: nothing caught an exception\n", stderr);
  }
  std::abort();
}

}  // namespace __gnu_cxx
