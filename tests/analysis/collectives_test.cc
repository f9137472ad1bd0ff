#include "facts/collectives/collectives.h"

#include <algorithm>

#include "facts/job/job.h"
#include "tests/catch2.h"

namespace tlparse {
namespace {

CollectiveItem Item(std::string op, std::string shape = "[8]", std::string group = "0",
                    std::string dtype = "float32") {
  CollectiveItem item;
  item.is_wait = op == "wait_tensor";
  item.op = std::move(op);
  item.shape = std::move(shape);
  item.group = std::move(group);
  item.dtype = std::move(dtype);
  return item;
}

CollectiveComparison Compare(const std::vector<CollectiveItem>& a,
                             const std::vector<CollectiveItem>& b) {
  CollectiveTable table;
  CollectiveList reference, other;
  for (const CollectiveItem& item : a) reference.push_back(table.Add(item));
  for (const CollectiveItem& item : b) other.push_back(table.Add(item));
  return CompareCollectives(table, reference, other);
}

std::string Kinds(const std::vector<CollectiveItem>& a, const std::vector<CollectiveItem>& b) {
  const CollectiveComparison compared = Compare(a, b);
  std::string text;
  for (const CollectiveMismatch& mismatch : compared.mismatches)
    text += std::string(text.empty() ? "" : " ") + std::string(Name(mismatch.kind));
  const std::string& renamed = compared.renamed_groups;
  return renamed.empty() ? text : text + "[" + renamed + "]";
}

}  // namespace

TEST_CASE("kinds of mismatch") {
  const std::vector<CollectiveItem> base = {Item("all_reduce_"),
                                            Item("all_gather_into_tensor", "[4]"),
                                            Item("wait_tensor"), Item("reduce_scatter_tensor")};
  CHECK(Kinds(base, base).empty());
  auto other = base;
  other[1].shape = "[5]";
  CHECK(Kinds(base, other) == "size");
  other = base;
  other[1].dtype = "bfloat16";
  CHECK(Kinds(base, other) == "dtype");
  other = base;
  other[0].op = "all_to_all_single";
  CHECK(Kinds(base, other) == "type");
  other = base;
  other[0].arguments = "'max'";
  CHECK(Kinds(base, other) == "syntax");
  other = base;
  std::swap(other[0], other[1]);
  CHECK(Kinds(base, other) == "order");
  other = base;
  other.insert(other.begin() + 1, Item("broadcast_"));
  CHECK(Kinds(base, other) == "missing");
  other = base;
  other.erase(other.begin() + 3);
  CHECK(Kinds(base, other) == "missing");
}

TEST_CASE("a mismatch of order says what stands in the other's place") {
  const std::vector<CollectiveItem> base = {Item("all_reduce_", "[8]", "1"),
                                            Item("all_gather_into_tensor", "[4]", "2"),
                                            Item("broadcast_")};
  auto other = base;
  std::rotate(other.begin(), other.begin() + 1, other.end());
  const std::vector<CollectiveMismatch> found = Compare(base, other).mismatches;
  REQUIRE(found.size() == 1);
  CHECK(found[0].kind == MismatchKind::kOrder);
  CHECK(found[0].against_ordinal == 0);
  CHECK(found[0].ordinal == 2);
  CHECK(found[0].item == "all_reduce_ [8] float32 group 1");
  CHECK(found[0].instead == "all_gather_into_tensor [4] float32 group 2");
  CHECK(found[0].against_instead == "broadcast_ [8] float32 group 0");
  CHECK(found[0].Text() ==
        "#1 all_reduce_ [8] float32 group 1 → all_gather_into_tensor [4] float32 group 2; "
        "all_reduce_ is #3 here");
}

TEST_CASE("groups that are renamed throughout are no mismatch, others are") {
  const std::vector<CollectiveItem> base = {Item("all_reduce_", "[8]", "1"),
                                            Item("all_reduce_", "[9]", "2"),
                                            Item("all_reduce_", "[10]", "1")};
  std::vector<CollectiveItem> other = {Item("all_reduce_", "[8]", "5"),
                                       Item("all_reduce_", "[9]", "6"),
                                       Item("all_reduce_", "[10]", "5")};
  CHECK(Kinds(base, other) == "[1 → 5, 2 → 6]");
  other = base;
  other[2].group = "2";
  CHECK(Kinds(base, other) == "group");
}

TEST_CASE("a schedule that knows names only agrees with a code that knows more") {
  const std::vector<CollectiveItem> base = {Item("all_reduce_", "", "", ""),
                                            Item("wait_tensor", "", "", "")};
  const std::vector<CollectiveItem> other = {Item("all_reduce_"), Item("wait_tensor")};
  CHECK(Kinds(base, other).empty());
}

TEST_CASE("what a table of collectives holds is found again, and each text once") {
  CollectiveTable table;
  CollectiveItem item = Item("all_reduce_", "[8]", "1");
  item.arguments = "'sum'";
  const CollectiveRef ref = table.Add(item);
  const CollectiveRef other_group = table.Add(Item("all_reduce_", "[8]", "2"));
  CHECK(table.Item(ref).Title() == item.Title());
  CHECK(table.Add(item).item == ref.item);
  CHECK(table.Add(Item("all_reduce_", "[8]", "3")).item == other_group.item);
  CHECK(other_group.item != ref.item);
  CHECK(table.Group(other_group) == "2");
  table.Clear();
  CHECK(table.Item(table.Add(item)).Title() == item.Title());
}

TEST_CASE("schedules without a common collective are compared by place, the first 200 named") {
  constexpr int kCount = 50'000;
  std::vector<CollectiveItem> base, other;
  for (int i = 0; i < kCount; ++i) {
    base.push_back(Item("all_reduce_", "[" + std::to_string(i) + "]"));
    other.push_back(Item("all_reduce_", "[" + std::to_string(i) + ", 2]"));
  }
  const CollectiveComparison compared = Compare(base, other);
  REQUIRE(compared.mismatches.size() == 200);
  CHECK(compared.left_out == kCount - 200);
  CHECK(compared.mismatches[7].Text() ==
        "all_reduce_ [7] float32 group 0 → all_reduce_ [7, 2] float32 group 0");
}

TEST_CASE("ranges of ranks") {
  CHECK(FormatRankRanges({}).empty());
  CHECK(FormatRankRanges({0, 1, 2, 3, 6}) == "0-3,6");
  CHECK(FormatRankRanges({0, 1, 3, 5, 6, 7}) == "0,1,3,5-7");
}

}  // namespace tlparse
