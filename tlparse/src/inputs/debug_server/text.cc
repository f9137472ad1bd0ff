#include "inputs/debug_server/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/ascii.h"

namespace tlparse {
namespace {

// What stands behind `begin` and before `end`; nothing: the line is not of that form.
std::optional<std::string_view> WithinLine(std::string_view line, std::string_view begin,
                                           std::string_view end) {
  if (line.size() < begin.size() + end.size() || !line.starts_with(begin) || !line.ends_with(end))
    return std::nullopt;
  return line.substr(begin.size(), line.size() - begin.size() - end.size());
}

// "=== Rank 0: http://node3:36153/handler/dump_traceback? ==="; "<h2>Rank 0: …</h2>".
std::optional<DebugServerRank> HeadOf(std::string_view line) {
  constexpr std::string_view kHandler = "/handler/";
  while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  std::optional<std::string_view> text = WithinLine(line, "=== Rank ", " ===");
  if (!text) text = WithinLine(line, "<h2>Rank ", "</h2>");
  if (!text) return std::nullopt;
  DebugServerRank head;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), head.rank);
  text->remove_prefix(static_cast<std::size_t>(end - text->data()));
  const std::size_t handler = text->rfind(kHandler);
  if (error != std::errc() || head.rank < 0 || !text->starts_with(": ") || handler == text->npos)
    return std::nullopt;
  head.address = text->substr(2, handler - 2);
  head.endpoint = text->substr(handler + kHandler.size());
  head.endpoint.resize(std::min(head.endpoint.find('?'), head.endpoint.size()));
  if (head.endpoint != "dump_traceback" && head.endpoint != "pyspy_dump") return std::nullopt;
  return head;
}

}  // namespace

bool HasDebugServerHead(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (HeadOf(text.substr(0, end))) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

bool DebugServerText::Add(std::string_view line, std::int64_t number) {
  if (std::optional<DebugServerRank> head = HeadOf(line)) {
    head->line = number;
    ranks.push_back(std::move(*head));
    return true;
  }
  if (ranks.empty()) return false;
  DebugServerRank& rank = ranks.back();
  const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
  std::string_view bare = line.substr(indent);
  if (const auto status = WithinLine(bare, "<p>Failed to fetch: status=", "</p>"))
    rank.error = fmt::format("Error: {}", *status);
  if (bare.starts_with("Error: ") && rank.stacks.empty()) rank.error = bare;
  if (bare.starts_with("<pre>")) line = bare.substr(5);
  if (line.ends_with("</pre>")) line.remove_suffix(6);
  if (bare.starts_with("</") || bare.starts_with("<p>")) return true;
  if (rank.error.empty() && rank.stacks.size() + line.size() < kMostStackBytes)
    rank.stacks += fmt::format("{}\n", line);
  return true;
}

std::string DebugServerTime(std::string_view path) {
  constexpr std::string_view kForm = "_00000000_000000.txt";
  if (path.size() < kForm.size()) return {};
  const std::string_view end = path.substr(path.size() - kForm.size());
  for (std::size_t i = 0; i < kForm.size(); ++i)
    if (kForm[i] == '0' ? !IsDigit(end[i]) : end[i] != kForm[i]) return {};
  const auto part = [&](std::size_t from, std::size_t size) { return end.substr(from, size); };
  return fmt::format("{}-{}-{} {}:{}:{}", part(1, 4), part(5, 2), part(7, 2), part(10, 2),
                     part(12, 2), part(14, 2));
}

}  // namespace tlparse
