// Lists of collectives of which each distinct one is stored once: a schedule may have a million.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace tlparse {

struct CollectiveItem {
  std::string op;  // all_reduce_, without namespace and overload; empty: unknown
  bool is_wait = false;
  std::string group;          // process group; empty: unknown
  std::string shape;          // "[8, 16]"; empty: unknown
  std::string dtype;          // empty: unknown
  std::string arguments;      // other than tensor and group; empty: unknown or none
  std::string Title() const;  // "all_reduce_ [8, 16] float32 'sum' group 1"
};

// "torch.ops._c10d_functional.all_reduce_.default" → "all_reduce_".
std::string ShortOp(std::string_view op);
// The arguments without the name of the group, which is compared by itself.
std::string WithoutGroup(std::string_view arguments, std::string_view group);

// A collective of a CollectiveTable. `item` stands for all but the group:
//
//   bit 0 set     the other bits are a place in the table's list of facts
//   bit 0 clear   only the op's text is known (of a schedule); bit 1: it is a wait; the other bits are the text
struct CollectiveRef {
  std::uint32_t item;
  std::uint32_t group;  // a text of the table; 0: unknown
};
using CollectiveList = std::vector<CollectiveRef>;

class CollectiveTable {
 public:
  CollectiveTable();
  CollectiveTable(const CollectiveTable&) = delete;
  CollectiveTable& operator=(const CollectiveTable&) = delete;

  CollectiveRef Add(const CollectiveItem& item);
  CollectiveItem Item(CollectiveRef ref) const;
  std::string_view Op(CollectiveRef ref) const { return Text(FactsOf(ref).op); }
  std::string_view Group(CollectiveRef ref) const { return Text(ref.group); }
  bool IsWait(CollectiveRef ref) const { return FactsOf(ref).is_wait; }
  // Whether two may be the same collective, whatever their groups: what one does not have agrees
  // with all.
  bool SameButGroup(CollectiveRef a, CollectiveRef b) const;
  // The same collectives in the same order, of the same groups.
  bool AreSame(const CollectiveList& a, const CollectiveList& b) const;
  // Texts are never removed one by one.
  void Clear();

 private:
  struct Facts {
    std::uint32_t op, shape, dtype, arguments;
    bool is_wait;
    bool operator==(const Facts&) const = default;
  };
  // Sets of numbers of texts and items, found by what they stand for.
  struct TextHash {
    using is_transparent = void;
    const CollectiveTable* table;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
    std::size_t operator()(std::uint32_t id) const { return (*this)(table->Text(id)); }
  };
  struct TextEqual {
    using is_transparent = void;
    const CollectiveTable* table;
    bool operator()(std::uint32_t a, std::uint32_t b) const { return a == b; }
    bool operator()(std::string_view a, std::uint32_t b) const { return a == table->Text(b); }
    bool operator()(std::uint32_t a, std::string_view b) const { return table->Text(a) == b; }
  };
  struct FactsHash {
    using is_transparent = void;
    const CollectiveTable* table;
    std::size_t operator()(const Facts& facts) const;
    std::size_t operator()(std::uint32_t id) const { return (*this)(table->items_[id]); }
  };
  struct FactsEqual {
    using is_transparent = void;
    const CollectiveTable* table;
    bool operator()(std::uint32_t a, std::uint32_t b) const { return a == b; }
    bool operator()(const Facts& a, std::uint32_t b) const { return a == table->items_[b]; }
    bool operator()(std::uint32_t a, const Facts& b) const { return table->items_[a] == b; }
  };

  Facts FactsOf(CollectiveRef ref) const {
    return (ref.item & 1U) != 0 ? items_[ref.item / 2]
                                : Facts{ref.item / 4, 0, 0, 0, (ref.item & 2U) != 0};
  }
  std::uint32_t TextId(std::string_view text);
  std::string_view Text(std::uint32_t id) const {
    return std::string_view(bytes_).substr(ends_[id], ends_[id + 1] - ends_[id]);
  }

  std::string bytes_;                // of all texts; the first one is empty
  std::vector<std::uint32_t> ends_;  // of the texts, behind the beginning of the first
  std::vector<Facts> items_;
  std::unordered_set<std::uint32_t, TextHash, TextEqual> texts_;
  std::unordered_set<std::uint32_t, FactsHash, FactsEqual> known_;
};

}  // namespace tlparse
