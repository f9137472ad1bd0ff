#include <fcntl.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/nearest.h"
#include "cli/terminal.h"

namespace {

// The command that is meant by a first word that is no path; empty: none.
std::string MistypedCommand(const std::string& word) {
  struct stat status {};
  if (word.starts_with('-') || stat(word.c_str(), &status) == 0) return {};
  std::vector<std::string> names;
  for (const tlparse::Command& command : tlparse::Commands()) names.emplace_back(command.name);
  return tlparse::Nearest(word, names);
}

int Run(const std::vector<std::string>& arguments) {
  if (!arguments.empty()) {
    if (arguments.front() == "__complete")
      return tlparse::RunComplete(std::span(arguments).subspan(1));
    for (const tlparse::Command& command : tlparse::Commands()) {
      if (arguments.front() == command.name) return command.run(std::span(arguments).subspan(1));
    }
  }
  if (!arguments.empty()) {
    if (const std::string meant = MistypedCommand(arguments.front()); !meant.empty())
      return tlparse::ReportError(
          {tlparse::ErrorCode::kUsage, "'" + arguments.front() +
                                           "' is neither a command nor a file; did you mean "
                                           "'tlparse " +
                                           meant + "'?"});
  }
  return tlparse::RunIngest(arguments);
}

// A file that is opened later does not take the place of standard input or output: what is printed
// would go into it.
void OpenStandardDescriptors() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) < 0) (void)open("/dev/null", O_RDWR);
  }
}

}  // namespace

int main(int argc, char** argv) {
  OpenStandardDescriptors();
  // A file-size limit (ulimit -f) is an error of the write then, with a word and nothing left
  // behind.
  std::signal(SIGXFSZ, SIG_IGN);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    const int code = Run(arguments);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    // A full disk: half an answer must not look like a whole one.
    std::fputs("tlparse: standard output could not be written to its end\n", stderr);
    return code == tlparse::kExitInternal ? code : tlparse::kExitUsage;
  } catch (const std::bad_alloc&) {
    std::fputs("tlparse: not enough memory\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tlparse: internal error: %s\n", tlparse::Printable(error.what()).c_str());
  }
  return tlparse::kExitInternal;
}
