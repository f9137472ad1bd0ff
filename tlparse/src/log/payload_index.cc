#include "log/payload_index.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <new>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "log/payload_run.h"

namespace tlparse {
namespace {

using payload_run::Hasher;
using payload_run::Key;
using payload_run::Pack;
using payload_run::PackedEntry;
using payload_run::SortedRun;
using payload_run::TemporaryFile;
using payload_run::ToEntry;
using payload_run::ToKey;

constexpr std::size_t kMinPlaces = 32;

}  // namespace

// Open addressing with linear probing; a power of two of places.
class PayloadTable {
 public:
  explicit PayloadTable(std::size_t capacity)
      : places_(static_cast<PackedEntry*>(std::calloc(capacity, sizeof(PackedEntry)))),
        capacity_(capacity) {
    if (places_ == nullptr) throw std::bad_alloc();
  }

  // The entry with `key`, or the free place where it belongs.
  const PackedEntry& Find(const Key& key, std::uint64_t hash) const {
    return places_.get()[PositionOf(key, hash)];
  }
  void Add(const PackedEntry& packed, std::uint64_t hash) {
    places_.get()[PositionOf(packed.key, hash)] = packed;
    ++size_;
  }
  bool is_full() const { return (size_ + 1) * 4 > capacity_ * 3; }
  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }
  const PackedEntry* begin() const { return places_.get(); }
  const PackedEntry* end() const { return places_.get() + capacity_; }

  // The entries, ascending by key, in place: the table is good for nothing but Clear()
  // afterwards.
  std::span<const PackedEntry> Sort() {
    PackedEntry* const begin = places_.get();
    PackedEntry* const end = std::partition(
        begin, begin + capacity_, [](const PackedEntry& packed) { return packed.is_taken != 0; });
    std::sort(begin, end, [](const PackedEntry& a, const PackedEntry& b) { return a.key < b.key; });
    return {begin, end};
  }
  void Clear() {
    std::memset(static_cast<void*>(places_.get()), 0, capacity_ * sizeof(PackedEntry));
    size_ = 0;
  }

 private:
  std::size_t PositionOf(const Key& key, std::uint64_t hash) const {
    // The upper bits of the hash; the capacity is a power of two.
    std::size_t position = hash >> std::countl_zero(capacity_ - 1);
    for (;; position = (position + 1) & (capacity_ - 1)) {
      const PackedEntry& packed = places_.get()[position];
      if (!packed.is_taken || packed.key == key) return position;
    }
  }
  struct Free {
    void operator()(PackedEntry* places) const { std::free(places); }
  };
  std::unique_ptr<PackedEntry, Free>
      places_;  // calloc: large tables cost memory only where they are used
  std::size_t capacity_;
  std::size_t size_ = 0;
};

struct PayloadIndex::State {
  State(std::string directory, std::size_t max_table_bytes)
      : spill_directory(std::move(directory)),
        max_places(std::bit_floor(std::max(max_table_bytes / sizeof(PackedEntry), kMinPlaces))),
        table(std::min<std::size_t>(max_places, 1024)) {}

  // Makes room for one more entry. On failure nothing has changed.
  Result<void> Grow() {
    if (table.capacity() < max_places) {
      PayloadTable larger(table.capacity() * 2);
      for (const PackedEntry& packed : table) {
        if (packed.is_taken) larger.Add(packed, hash(packed.key));
      }
      table = std::move(larger);
      return {};
    }
    const std::span<const PackedEntry> sorted = table.Sort();
    const Result<void> spilled = Spill(sorted);
    if (spilled) {
      table.Clear();
      return {};
    }
    PayloadTable again(table.capacity());
    for (const PackedEntry& packed : sorted) again.Add(packed, hash(packed.key));
    table = std::move(again);
    return spilled;
  }

  Result<void> Spill(std::span<const PackedEntry> sorted) {
    TemporaryFile file;
    RETURN_IF_ERROR(file.Open(spill_directory));
    for (const PackedEntry& packed : sorted) RETURN_IF_ERROR(file.Append(packed));
    return AddRun(std::move(file), false);
  }

  Result<void> AddRun(TemporaryFile file, bool is_existing) {
    RETURN_IF_ERROR(file.Flush());
    if (file.size() == 0) return {};
    ASSIGN_OR_RETURN(SortedRun run, SortedRun::Make(std::move(file), hash, is_existing));
    runs.push_back(std::move(run));
    return {};
  }

  std::string spill_directory;
  std::size_t max_places;
  Hasher hash;
  PayloadTable table;
  std::vector<SortedRun> runs;
  std::size_t size = 0;
};

PayloadIndex::PayloadIndex(std::string spill_directory, std::size_t max_table_bytes)
    : state_(std::make_unique<State>(std::move(spill_directory), max_table_bytes)) {}
PayloadIndex::~PayloadIndex() = default;
PayloadIndex::PayloadIndex(PayloadIndex&&) noexcept = default;
PayloadIndex& PayloadIndex::operator=(PayloadIndex&&) noexcept = default;

std::optional<PayloadIndex::Entry> PayloadIndex::Find(const Md5Digest& md5) const {
  const State& state = *state_;
  const Key key = ToKey(md5);
  const std::uint64_t hash = state.hash(key);
  PackedEntry packed = state.table.Find(key, hash);
  const auto holds = [&](const SortedRun& run) { return run.Find(key, hash, &packed); };
  if (!packed.is_taken && std::none_of(state.runs.begin(), state.runs.end(), holds))
    return std::nullopt;
  return ToEntry(packed);
}

Result<void> PayloadIndex::Insert(const Entry& entry) {
  State& state = *state_;
  if (state.table.is_full()) RETURN_IF_ERROR(state.Grow());
  const PackedEntry packed = Pack(entry);
  state.table.Add(packed, state.hash(packed.key));
  ++state.size;
  return {};
}

Result<void> PayloadIndex::AddSortedRun(std::function<bool(Entry&)> next) {
  State& state = *state_;
  TemporaryFile file;
  RETURN_IF_ERROR(file.Open(state.spill_directory));
  Key previous{};
  for (Entry entry{}; next(entry);) {
    const PackedEntry packed = Pack(entry);
    if (file.size() > 0 && packed.key <= previous) {
      return Fail(ErrorCode::kInternal, "the payloads of the database are not in order of hash");
    }
    previous = packed.key;
    RETURN_IF_ERROR(file.Append(packed));
  }
  const std::size_t count = file.size();
  RETURN_IF_ERROR(state.AddRun(std::move(file), true));
  state.size += count;
  return {};
}

std::size_t PayloadIndex::size() const { return state_->size; }

Result<void> PayloadIndex::ForEachSorted(const std::function<void(const Entry&)>& visit) {
  struct Source {
    const PackedEntry* next;
    SortedRun::Reader* reader;
  };
  State& state = *state_;
  const std::span<const PackedEntry> table = state.table.Sort();
  const auto later = [](const Source& a, const Source& b) { return b.next->key < a.next->key; };
  std::priority_queue<Source, std::vector<Source>, decltype(later)> sources(later);
  std::deque<SortedRun::Reader> readers;
  const auto add = [&](SortedRun::Reader& reader) -> Result<void> {
    if (const PackedEntry* const next = reader.Next()) {
      sources.push({next, &reader});
    } else if (!reader.is_at_end()) {
      return tl::unexpected<Error>(reader.ReadError());
    }
    return {};
  };
  for (const SortedRun& run : state.runs) {
    if (!run.is_existing()) RETURN_IF_ERROR(add(readers.emplace_back(run)));
  }
  auto in_table = table.begin();
  while (in_table != table.end() || !sources.empty()) {
    if (sources.empty() || (in_table != table.end() && in_table->key < sources.top().next->key)) {
      visit(ToEntry(*in_table++));
      continue;
    }
    const Source source = sources.top();
    sources.pop();
    visit(ToEntry(*source.next));
    RETURN_IF_ERROR(add(*source.reader));
  }
  return {};
}

}  // namespace tlparse
