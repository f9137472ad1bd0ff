#include "cli/shares.h"

#include <fmt/format.h>

#include "cli/rank_output.h"

namespace tlparse {

std::string Percent(double share) { return fmt::format("{:.1f} %", share * 100); }

std::string PartText(std::string amount, double part, double all) {
  return all > 0 ? fmt::format("{} ({})", amount, Percent(part / all)) : std::move(amount);
}

void PrintLine(std::string_view text, int indent) {
  if (Terminal::Out().width > 0) return PrintWrapped(text, indent, indent + 2);
  std::puts((std::string(static_cast<std::size_t>(indent), ' ') + Printable(text)).c_str());
}

void PrintMore(std::size_t count, std::size_t top) {
  if (count > top) std::puts(fmt::format("and {} more (--top)", count - top).c_str());
}

std::vector<Table::Column> ShareHeadings(std::string_view amount) {
  return {{"share", Table::Align::kRight}, {std::string(amount), Table::Align::kRight}};
}

}  // namespace tlparse
