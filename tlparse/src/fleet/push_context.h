// Data of the database that the rows of a push need: strings, hashes, and the process, compile and
// graph of a row. Records what the rows refer to.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fleet/fleet_schema.h"
#include "fleet/id_set.h"
#include "fleet/run_selection.h"
#include "store/database.h"
#include "store/hash128.h"

namespace tlparse {

// Strings of a pool by id: those that fit are kept, the others are read when asked for.
class PoolTexts {
 public:
  static Result<PoolTexts> Load(Database& database, const std::string& table);
  // Valid until the next call.
  Result<std::string_view> Get(std::int64_t id);

 private:
  struct Place {
    std::uint32_t begin = 0;
    std::uint32_t size = 0;
  };
  static constexpr std::uint32_t kAbsent = 0xFFFFFFFF;
  Database* database_ = nullptr;
  std::string sql_;
  std::string kept_;
  std::vector<Place> places_;
  std::string other_;
};

class PushContext {
 public:
  static Result<PushContext> Make(Database& database, const FleetSchema& schema,
                                  const RunSelection& run);

  static constexpr std::int64_t kNone = -1;

  Database& database() { return *database_; }
  const RunSelection& run() const { return *run_; }
  PoolTexts& texts() { return texts_; }

  // kNone: no such row, or it belongs to none.
  std::int64_t ProcessOfCompile(std::int64_t compile) const;
  std::int64_t CompileOfGraph(std::int64_t graph) const;
  Result<std::int64_t> ProcessOfRecord(std::int64_t record);
  std::int64_t ProcessOf(const std::string& table, std::int64_t id) const;
  void SetProcess(const std::string& table, std::int64_t id, std::int64_t process);

  std::string_view Function(std::int64_t compile) const;
  std::string_view Label(std::int64_t compile) const;
  std::int64_t Generation(std::int64_t compile) const;  // 0: none
  std::int64_t CompileUs(std::int64_t compile) const;   // kNone: unknown
  std::string_view Direction(std::int64_t graph) const;
  // 0, 1, … for calls with equal arguments.
  std::int64_t NextLookup(std::int64_t compile, std::int64_t layer, std::int64_t graph);

  // Zero: no such content or payload.
  Hash128 ContentHash(std::int64_t content) const;
  Result<Hash128> PayloadHash(std::int64_t payload);
  // Of the payload's content with the smallest id: by this order similar payloads are stored next
  // to each other.
  Hash128 PayloadContent(std::int64_t payload) const;
  // A key of the set that depends on its components only (the set's own hash is that of the first
  // key seen, so it depends on which rank was read first).
  Hash128 SetKey(std::int64_t set) const;
  const std::map<std::int64_t, std::vector<std::int64_t>>& sets() const { return sets_; }
  Hash128 ComponentKey(std::int64_t component) const;

  // Rows below contents: number within the content, and that content.
  struct Owned {
    std::int64_t content = 0;
    std::int64_t number = 0;
  };
  const Owned* FindOwned(const std::string& table, std::int64_t id) const;

  struct Used {
    IdSet texts, contents, payloads, sets, keys, stacks;
  };
  Used used;

 private:
  struct Compile {
    std::int32_t process = -1;
    std::int32_t function = -1;  // into names_
    std::int32_t label = -1;
    std::int32_t generation = 0;
    std::int64_t duration_us = -1;
  };
  struct Graph {
    std::int64_t compile = -1;
    std::int32_t direction = -1;
  };
  PushContext(Database& database, const RunSelection& run, PoolTexts texts)
      : database_(&database), run_(&run), texts_(std::move(texts)) {}
  std::int32_t Intern(std::string_view name);
  Result<void> LoadCompiles(const FleetSchema& schema);
  Result<void> LoadContents();
  Result<void> LoadComponents();
  Result<void> LoadOwned(const FleetSchema& schema);
  std::string_view Name(std::int32_t index) const {
    return index < 0 ? std::string_view()
                     : std::string_view(names_[static_cast<std::size_t>(index)]);
  }

  Database* database_;
  const RunSelection* run_;
  PoolTexts texts_;
  std::vector<std::string> names_;
  std::map<std::string, std::int32_t, std::less<>> name_ids_;
  std::vector<Compile> compiles_;
  std::vector<Graph> graphs_;
  std::map<std::string, std::vector<std::int32_t>> process_of_;
  std::string record_sql_;
  std::string payload_sql_;
  std::int64_t last_payload_ = -1;
  Hash128 last_payload_hash_;
  std::vector<Hash128> content_hashes_;
  std::vector<std::int32_t> content_of_payload_;
  std::vector<Hash128> component_keys_;
  std::map<std::int64_t, std::vector<std::int64_t>> sets_;
  std::vector<Hash128> set_keys_;
  std::map<std::string, std::vector<Owned>> owned_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int32_t>, std::int64_t> lookups_;
};

}  // namespace tlparse
