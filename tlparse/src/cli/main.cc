#include <clocale>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "cli/command.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    if (!arguments.empty()) {
      for (const tlparse::Command& command : tlparse::Commands()) {
        if (arguments.front() == command.name) return command.run(std::span(arguments).subspan(1));
      }
    }
    return tlparse::RunIngest(arguments);
  } catch (const std::bad_alloc&) {
    std::fputs("tlparse: not enough memory\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tlparse: internal error: %s\n", error.what());
  }
  return tlparse::kExitInternal;
}
