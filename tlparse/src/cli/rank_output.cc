#include "cli/rank_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "cli/cause_fields.h"
#include "cli/terminal.h"

namespace tlparse {
namespace {

int LineWidth() {
  return std::clamp(Terminal::Out().width == 0 ? 80 : Terminal::Out().width, 40, 120);
}

}  // namespace

std::string RanksText(const Job& job, const std::vector<RankIndex>& ranks) {
  constexpr std::size_t kMostBytesOfRanks = 60;
  std::string text = job.FormatRanks(ranks);
  if (const std::size_t comma = text.rfind(',', kMostBytesOfRanks);
      text.size() > kMostBytesOfRanks && comma != std::string::npos) {
    text = fmt::format("{},… ({} in all)", text.substr(0, comma), ranks.size());
  }
  const bool has_rank = std::any_of(ranks.begin(), ranks.end(), [&](RankIndex rank) {
    return job.participants()[static_cast<std::size_t>(rank)].rank.has_value();
  });
  return !has_rank ? text : fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", text);
}

std::string DamageText(const Job& job, const LogDamage& damage, const std::vector<RankIndex>& ranks,
                       const std::vector<RankIndex>& others) {
  if (!damage.MayExplain(ranks, others)) return {};
  const std::vector<RankIndex>& who = damage.AreDamaged(ranks) ? ranks : others;
  return fmt::format("the log{} of {} {} damaged (tlparse import-log)", PluralS(who.size()),
                     RanksText(job, who), who.size() == 1 ? "is" : "are");
}

std::optional<std::string> CutValue(const std::optional<std::string>& value) {
  if (!value || value->size() <= kMostValueBytes) return value;
  std::size_t end = kMostValueBytes;  // not within a character
  while (end > 0 && (static_cast<unsigned char>((*value)[end]) & 0xC0U) == 0x80U) --end;
  return value->substr(0, end);
}

bool HasCutValue(const ComponentDifference& difference) {
  return difference.a_value.value_or("").size() > kMostValueBytes ||
         difference.b_value.value_or("").size() > kMostValueBytes;
}

void WriteStrings(JsonWriter& json, const std::vector<std::string>& strings) {
  json.BeginArray();
  for (const std::string& text : strings) json.String(text);
  json.EndArray();
}

std::optional<std::string> NonEmpty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

void PrintWrapped(std::string_view text, int first_indent, int indent, Style style) {
  const int width = LineWidth();
  const std::string printable = Printable(text);
  std::string line(static_cast<std::size_t>(first_indent), ' ');
  bool is_empty = true;
  std::size_t styled_size = 0;  // bytes of the first line that are the first word
  const auto flush = [&] {
    line += '\n';
    if (styled_size > 0 && style != Style::kNone) {
      const auto indent_size = static_cast<std::size_t>(first_indent);
      line = line.substr(0, indent_size) + Styled(line.substr(indent_size, styled_size), style) +
             line.substr(indent_size + styled_size);
      styled_size = 0;
      style = Style::kNone;
    }
    std::fwrite(line.data(), 1, line.size(), stdout);
    line.assign(static_cast<std::size_t>(indent), ' ');
    is_empty = true;
  };
  for (std::size_t at = 0; at < printable.size();) {
    std::size_t end = printable.find(' ', at);
    if (end == std::string::npos) end = printable.size();
    // A word that fits on no line (a long list of ranks, a path) is cut where it may be.
    const auto room = static_cast<std::size_t>(width - std::max(first_indent, indent));
    if (end - at > room &&
        DisplayWidth(std::string_view(printable).substr(at, end - at)) > static_cast<int>(room)) {
      const std::size_t comma = printable.rfind(',', at + room - 1);
      end = comma == std::string::npos || comma <= at ? end : comma + 1;
    }
    const std::string word = printable.substr(at, end - at);
    if (!is_empty && DisplayWidth(line) + 1 + DisplayWidth(word) > width) flush();
    if (!is_empty) line += ' ';
    if (is_empty && at == 0) styled_size = word.size();
    line += word;
    is_empty = false;
    at = end < printable.size() && printable[end] == ' ' ? end + 1 : end;
  }
  flush();
}

void PrintHeading(std::string_view text) {
  if (DisplayWidth(Printable(text)) > LineWidth()) return PrintWrapped(text, 0, 2);
  const std::string line = Styled(Printable(text), Style::kBold) + '\n';
  std::fwrite(line.data(), 1, line.size(), stdout);
}

std::string CompilesText(const std::vector<std::string>& labels) {
  if (labels.empty()) return {};
  if (labels.size() == 1) return labels.front();
  return fmt::format("{}{}{}", labels.front(), labels.size() == 2 ? ", " : " … ", labels.back());
}

}  // namespace tlparse
