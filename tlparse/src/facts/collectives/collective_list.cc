#include "facts/collectives/collective_list.h"

#include <fmt/format.h>

#include <algorithm>

namespace tlparse {

std::string CollectiveItem::Title() const {
  std::string title = op.empty() ? "(collective without name)" : op;
  if (!arguments.empty()) title += '(' + arguments + ')';
  if (!shape.empty()) title += ' ' + shape;
  if (!dtype.empty()) title += ' ' + dtype;
  if (!group.empty()) title += " group " + group;
  return title;
}

std::size_t CollectiveTable::FactsHash::operator()(const Facts& facts) const {
  std::size_t hash = facts.is_wait ? 1 : 0;
  for (const std::uint32_t part : {facts.op, facts.shape, facts.dtype, facts.arguments})
    hash = (hash ^ part) * 0x9E3779B97F4A7C15U + (hash >> 29U);
  return hash;
}

CollectiveTable::CollectiveTable()
    : texts_(0, TextHash{this}, TextEqual{this}), known_(0, FactsHash{this}, FactsEqual{this}) {
  Clear();
}

bool CollectiveTable::AreSame(const CollectiveList& a, const CollectiveList& b) const {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [this](CollectiveRef one, CollectiveRef other) {
                      return SameButGroup(one, other) && one.group == other.group;
                    });
}

void CollectiveTable::Clear() {
  known_ = decltype(known_)(0, FactsHash{this}, FactsEqual{this});
  texts_ = decltype(texts_)(0, TextHash{this}, TextEqual{this});
  bytes_ = {};
  items_ = {};
  ends_ = {0, 0};
}

std::uint32_t CollectiveTable::TextId(std::string_view text) {
  if (text.empty()) return 0;
  if (const auto known = texts_.find(text); known != texts_.end()) return *known;
  const auto id = static_cast<std::uint32_t>(ends_.size() - 1);
  bytes_ += text;
  ends_.push_back(static_cast<std::uint32_t>(bytes_.size()));
  texts_.insert(id);
  return id;
}

CollectiveRef CollectiveTable::Add(const CollectiveItem& item) {
  const Facts facts{TextId(item.op), TextId(item.shape), TextId(item.dtype), TextId(item.arguments),
                    item.is_wait};
  const std::uint32_t group = TextId(item.group);
  if (facts.shape == 0 && facts.dtype == 0 && facts.arguments == 0)
    return {4 * facts.op + (facts.is_wait ? 2 : 0), group};
  auto known = known_.find(facts);
  if (known == known_.end()) {
    items_.push_back(facts);
    known = known_.insert(static_cast<std::uint32_t>(items_.size() - 1)).first;
  }
  return {2 * *known + 1, group};
}

CollectiveItem CollectiveTable::Item(CollectiveRef ref) const {
  const Facts facts = FactsOf(ref);
  return {std::string(Text(facts.op)),    facts.is_wait,
          std::string(Text(ref.group)),   std::string(Text(facts.shape)),
          std::string(Text(facts.dtype)), std::string(Text(facts.arguments))};
}

bool CollectiveTable::SameButGroup(CollectiveRef a, CollectiveRef b) const {
  if (a.item == b.item) return true;
  const Facts x = FactsOf(a), y = FactsOf(b);
  const auto agree = [](std::uint32_t one, std::uint32_t other) {
    return one == 0 || other == 0 || one == other;
  };
  return x.is_wait == y.is_wait && agree(x.op, y.op) && agree(x.shape, y.shape) &&
         agree(x.dtype, y.dtype) && (x.arguments == y.arguments || x.shape == 0 || y.shape == 0);
}

std::string ShortOp(std::string_view op) {
  constexpr std::string_view kNamespaces[] = {"c10d_functional.", "c10d."};
  for (const std::string_view name : kNamespaces) {
    if (const std::size_t at = op.find(name); at != std::string_view::npos)
      op.remove_prefix(at + name.size());
  }
  return std::string(op.substr(0, op.find('.')));
}

std::string WithoutGroup(std::string_view arguments, std::string_view group) {
  for (const char quote : {'\'', '"'}) {
    const std::string quoted = fmt::format("{}{}{}", quote, group, quote);
    if (group.empty() || !arguments.ends_with(quoted)) continue;
    arguments.remove_suffix(quoted.size());
    while (!arguments.empty() && (arguments.back() == ' ' || arguments.back() == ','))
      arguments.remove_suffix(1);
    break;
  }
  return std::string(arguments);
}

}  // namespace tlparse
