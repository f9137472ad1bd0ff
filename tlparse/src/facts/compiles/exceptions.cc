#include "facts/compiles/exceptions.h"

#include <fmt/format.h>

#include "facts/text/message_lines.h"
#include "facts/text/shorten.h"

namespace tlparse {

std::string FirstLineWithText(std::string_view text) {
  std::string first;
  ForEachLine(text, [&](std::string_view line) {
    first = line;
    return line.empty();
  });
  return first;
}

namespace {

// "/tmp/x.cpp:1:10: fatal error: a.h: No such file" → "fatal error: a.h: No such file".
std::string_view WithoutPosition(std::string_view line) {
  for (const std::string_view mark : {"fatal error: ", "error: "}) {
    if (const std::size_t at = line.find(mark); at != std::string_view::npos)
      return line.substr(at);
  }
  return line;
}

// What a compiler that failed wrote first about an error; empty: the text is of no compiler. A
// linker's reason is in the line before it says that it failed.
std::string CompilerError(std::string_view reason) {
  constexpr std::string_view kOutput = "\nOutput:\n";
  const std::size_t begin = reason.find(kOutput);
  if (begin == std::string_view::npos || reason.find("\nCommand:\n") > begin) return {};
  std::string first, error, before;
  ForEachLine(reason.substr(begin + kOutput.size()), [&](std::string_view line) {
    if (line.empty()) return true;
    if (first.empty()) first = line;
    const bool is_of_linker =
        line.starts_with("collect2: error") || line.find("linker command failed") != line.npos;
    if (is_of_linker) {
      error = before;
    } else if (line.find("error: ") != std::string_view::npos) {
      error = WithoutPosition(line);
    }
    before = line;
    return error.empty();
  });
  return Shorten(error.empty() ? first : error, 200);
}

// A line up to PyTorch's advice, which the suggestion of a finding gives.
std::string_view WithoutRemedy(std::string_view line) {
  for (const std::string_view remedy :
       {" For more information, run with TORCH_LOGS=", ". If you're using mark_dynamic",
        ". Either remove the mark_dynamic", ". Use maybe_mark_dynamic"})
    line = line.substr(0, line.find(remedy));
  return line;
}

}  // namespace

std::string RaisedException(std::string_view reason) {
  std::string_view raised = Between(reason, "Developer debug context: raised exception ", "\n");
  for (const std::string_view begin : {"ExceptionVariable(<class '", "<class '"}) {
    if (raised.starts_with(begin)) raised = Between(raised, begin, "'");
  }
  // An op that fails on fake tensors: what it raised stands behind its arguments, which may fill lines.
  constexpr std::string_view kFake = "Dynamo failed to run FX node with fake tensors:",
                             kGot = ": got ";
  const bool is_fake = raised.find(kFake) != std::string_view::npos;
  std::string_view fake = is_fake ? raised : std::string_view();
  if (raised.empty()) {
    fake = Between(reason,
                   "Explanation: Dynamo failed to run FX node with fake tensors:", "\n  Hint: ");
    fake = fake.substr(0, fake.find("\n\n"));
  }
  const std::size_t got = fake.rfind(kGot);
  if (got == std::string_view::npos) return Shorten(Trimmed(raised), 160);
  fake.remove_prefix(got + kGot.size());
  if (is_fake && (fake.ends_with("\")") || fake.ends_with("')"))) fake.remove_suffix(2);
  return Shorten(Trimmed(fake), 200);
}

std::string CauseOfException(std::string_view type, std::string_view reason) {
  std::string text;
  bool is_said = false;
  ForEachLine(reason, [&](std::string_view line) {
    if (line.starts_with("Set TORCHDYNAMO_VERBOSE") || line.starts_with("Explanation:"))
      return false;
    // "Constraints violated (…)!" is followed by what was violated.
    constexpr std::string_view kItem = "- ";
    if (is_said && !line.starts_with(kItem)) return false;
    if (!line.empty())
      text += (text.empty() ? "" : " ") +
              std::string(WithoutRemedy(line.substr(is_said ? kItem.size() : 0)));
    if (is_said) return false;
    // "backend='x' raised:" continues in the next line.
    is_said = !line.empty() && !line.ends_with(":");
    return true;
  });
  for (const std::string& more : {CompilerError(reason), RaisedException(reason)}) {
    if (!more.empty() && text.find(more) == std::string::npos) text += ": " + more;
  }
  const std::size_t end = type.rfind('.');
  if (end != std::string_view::npos) type.remove_prefix(end + 1);
  if (type.empty() || text.starts_with(type)) return text.empty() ? std::string(type) : text;
  return text.empty() ? std::string(type) : fmt::format("{}: {}", type, text);
}

std::string AdviceForException(std::string_view reason) {
  constexpr std::string_view kElsewhere =
      "or give it another cache directory (TORCHINDUCTOR_CACHE_DIR)";
  if (reason.find("No space left on device") != std::string_view::npos)
    return fmt::format("free space on the file system that the process writes to, {}", kElsewhere);
  const std::string_view denied = Between(reason, "Permission denied: '", "'");
  if (denied.find("/locks/") != std::string_view::npos)
    return fmt::format("let the process write to {}, {}", denied.substr(0, denied.find("/locks/")),
                       kElsewhere);
  if (reason.find("No working C++ compiler found") != std::string_view::npos)
    return "install a C++ compiler on these hosts, or set CXX to the path of one";
  if (reason.find("maybe_mark_dynamic") != std::string_view::npos)
    return "mark it with torch._dynamo.maybe_mark_dynamic instead, or not at all; if the size has "
           "to "
           "vary, TORCH_LOGS=+dynamic prints what made it a constant";
  const std::string error = CompilerError(reason);
  if (error.find("Killed signal terminated program") != std::string::npos)
    return "look whether the host ran out of memory, which is the most frequent reason why a "
           "compiler is killed (the kernel's log says so); fewer compiles at a time need less "
           "(TORCHINDUCTOR_COMPILE_THREADS)";
  if (error.ends_with("is the same as output file"))
    return "give a cache directory whose path has no blank (TORCHINDUCTOR_CACHE_DIR)";
  constexpr std::string_view kMissing = ": No such file or directory";
  if (error.starts_with("fatal error: ") && error.ends_with(kMissing)) {
    const std::string header = error.substr(13, error.size() - 13 - kMissing.size());
    const std::string_view whose =
        header.starts_with("torch/") || header.starts_with("ATen/") || header.starts_with("c10/")
            ? ": it is one of the development files of PyTorch"
        : header == "Python.h" ? ": it is one of the development files of Python"
                               : "";
    return fmt::format("install the package that has {} on these hosts{}", header, whose);
  }
  return {};
}

}  // namespace tlparse
