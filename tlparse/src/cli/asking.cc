#include "cli/asking.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/terminal.h"

namespace tlparse {
namespace {

void CollectOfName(const std::vector<Finding>& findings, const std::string& name,
                   std::vector<const Finding*>& found) {
  for (const Finding& one : findings) {
    if (one.id == name || Name(one.kind) == name) found.push_back(&one);
    CollectOfName(one.evidence, name, found);
  }
}

std::string CommandText(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    const bool is_plain =
        !word.empty() && word.find_first_of(" \t\n\"'$*?;&|<>()\\`") == std::string::npos;
    text += text.empty() ? "" : " ";
    text += is_plain ? word : fmt::format("'{}'", word);
  }
  return text;
}

}  // namespace

Result<const Finding*> ChooseFinding(const std::vector<Finding>& findings,
                                     const std::string& name) {
  std::vector<const Finding*> found;
  CollectOfName(findings, name, found);
  if (found.size() == 1 || (!found.empty() && found.front()->id == name)) return found.front();
  if (found.empty())
    return Fail(
        ErrorCode::kNotFound,
        fmt::format("there is no finding '{}'; 'tlparse findings --json' has the ids", name));
  std::string ids;
  for (const Finding* one : found) ids += (ids.empty() ? "" : ", ") + one->id;
  return Fail(ErrorCode::kUsage,
              fmt::format("there are {} findings of kind '{}': {}", found.size(), name, ids));
}

void SayOfPlan(std::string_view name, const std::string& text) {
  std::fprintf(stderr, "%s\n", fmt::format("{:<10}{}", name, Printable(text)).c_str());
}

void SayCommand(const RecordedCommand& command) {
  for (const std::string& variable : command.variables) SayOfPlan("variable", variable);
  SayOfPlan("command", CommandText(command.words));
  if (!command.directory.empty()) SayOfPlan("directory", command.directory);
}

Result<bool> Ask(std::string_view command) {
  if (isatty(STDIN_FILENO) == 0)
    return Fail(ErrorCode::kUsage,
                fmt::format("{}: nobody can be asked here: --yes runs the command", command));
  std::fputs("Run it? [y/N] ", stderr);
  std::fflush(stderr);
  std::string answer;
  for (int c = std::getchar(); c != EOF && c != '\n'; c = std::getchar())
    answer += static_cast<char>(c);
  return answer == "y" || answer == "Y" || answer == "yes";
}

}  // namespace tlparse
