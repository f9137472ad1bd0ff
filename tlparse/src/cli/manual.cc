// tlparse manual: the manual page or a page of Markdown, from what --help is made of.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>

#include "base/version.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/described_commands.h"
#include "report/finding_text.h"

namespace tlparse {
namespace {

// As troff shows it unchanged: no escapes, no request at the begin of a line, hyphens that can be searched for.
std::string Roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (out.empty() && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\n')
      out += out.ends_with('\n') || out.empty() ? "" : "\n.br\n";
    else if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

std::string OptionEntry(const DescribedOption& option) {
  std::string names;
  for (const std::string& name : option.names)
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", Roff(name));
  std::string value = option.is_positional ? "" : option.value;
  if (!option.choices.empty()) value = fmt::format("{}", fmt::join(option.choices, "|"));
  if (!value.empty()) names += fmt::format(" \\fI{}\\fR", Roff(value));
  return fmt::format(".TP\n{}\n{}\n", names, Roff(option.help));
}

std::string OptionEntries(const DescribedArguments& arguments) {
  std::string entries;
  for (const DescribedOption& option : arguments.options)
    if (option.names.back() != "--help") entries += OptionEntry(option);
  return entries;
}

std::string ManualPage() {
  const std::vector<DescribedCommand> commands = DescribeCommands();
  std::string page = fmt::format(
      ".TH TLPARSE 1 \"\" \"tlparse {}\" \"User Commands\"\n"
      ".SH NAME\ntlparse \\- answer questions about what PyTorch's compiler did\n.SH SYNOPSIS\n",
      kVersion);
  for (const DescribedCommand& command : commands) {
    page += fmt::format(".B tlparse {}\n", Roff(command.name));
    if (!command.usage.empty()) page += Roff(command.usage) + "\n";
    page += ".br\n";
  }
  page +=
      ".SH DESCRIPTION\n"
      "PyTorch writes a structured trace of everything its compiler does "
      "(TORCH_TRACE=directory), one log per process. tlparse ingests such logs, profiles of "
      "torch.profiler and dumps of the flight recorder into an SQLite database, and answers "
      "questions about them.\n"
      ".SH OPTIONS\nOf tlparse without a command:\n";
  page += OptionEntries(commands.front().arguments) + ".SH COMMANDS\n";
  for (const DescribedCommand& command : std::span(commands).subspan(1)) {
    const std::string& text = command.arguments.description;
    page +=
        fmt::format(".SS tlparse {} {}\n{}\n{}", Roff(command.name), Roff(command.usage),
                    Roff(text.empty() ? command.summary : text), OptionEntries(command.arguments));
  }
  page +=
      ".SH EXIT STATUS\n.TP\n.B 0\ndone\n.TP\n.B 1\nthe answer is no (check, \\-\\-strict)\n"
      ".TP\n.B 2\nusage, or input that cannot be read\n.TP\n.B 3\nan internal error\n"
      ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nno colours on a terminal\n"
      ".TP\n.B TORCH_TRACE\nthe directory that \\-\\-latest reads if no input is given\n"
      ".TP\n.B TLPARSE_CLICKHOUSE_USER, TLPARSE_CLICKHOUSE_PASSWORD\nfor a fleet's servers\n";
  return page;
}

std::string Markdown(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return MarkdownText(text);
}

std::string OptionRow(const DescribedOption& option) {
  std::string value = option.is_positional ? "" : option.value;
  if (!option.choices.empty()) value = fmt::format("{}", fmt::join(option.choices, "\\|"));
  return fmt::format("| `{}{}{}` | {} |\n", fmt::join(option.names, "`, `"),
                     value.empty() ? "" : " ", value, Markdown(option.help));
}

std::string OptionRows(const DescribedArguments& arguments) {
  std::string rows;
  for (const DescribedOption& option : arguments.options)
    if (option.names.back() != "--help") rows += OptionRow(option);
  return rows.empty() ? rows : "\n| | |\n|---|---|\n" + rows;
}

std::string MarkdownPage() {
  const std::vector<DescribedCommand> commands = DescribeCommands();
  std::string page =
      "# Reference\n\nMade by `tlparse manual --markdown`, of what `--help` prints.\n\n"
      "Exit codes: 0 done, 1 the answer is no (`check`, `--strict`), 2 usage or input that cannot "
      "be read, 3 an internal error.\n";
  for (const DescribedCommand& command : commands) {
    const std::string& text = command.arguments.description;
    std::string line = "tlparse";
    for (const std::string_view part : {std::string_view(command.name), command.usage})
      if (!part.empty()) line += fmt::format(" {}", part);
    page += fmt::format("\n## {}\n\n`{}`\n\n{}\n{}",
                        command.name.empty() ? "tlparse without a command" : command.name, line,
                        Markdown(text.empty() ? std::string(command.summary) : text),
                        OptionRows(command.arguments));
  }
  return page;
}

}  // namespace

int RunManual(std::span<const std::string> arguments) {
  Arguments app(
      "Print the manual page of all commands, as troff: tlparse manual | man -l - shows it.",
      "manual");
  bool is_markdown = false;
  app.Flag("--markdown", is_markdown, "as Markdown");
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  std::fputs((is_markdown ? MarkdownPage() : ManualPage()).c_str(), stdout);
  return kExitDone;
}

}  // namespace tlparse
