// How a record becomes rows. One source file per artifact family in this folder; each defines one
// Ingestor and names the record keys and artifact names it owns with TLPARSE_ARTIFACT at its end.
// CMake generates the table that joins them (tlparse/cmake/Artifacts.cmake): adding a family takes
// <stem>.cc here, schemas/sql/artifacts/<stem>.sql and fixtures/artifacts/<stem>.test, and no edit
// elsewhere.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artifacts/common/process_state.h"
#include "artifacts/prepared_record.h"
#include "base/result.h"
#include "enums/core.h"
#include "store/content_registry.h"
#include "store/import_log.h"
#include "store/row_batch.h"
#include "store/text_pool.h"

namespace tlparse {

class GraphTracker;
class StackPool;

// One record as an ingestor sees it. Views live until Ingest returns.
struct Record {
  std::int64_t id = 0;
  std::int64_t line = 0;
  std::int64_t byte_offset = 0;
  std::string_view kind;      // record key; "" if none or several
  std::string_view name;      // artifact name; "" if none
  std::string_view envelope;  // the header's JSON
  ProcessState* process = nullptr;
  CompileState* compile = nullptr;  // nullptr: outside any compile
  std::optional<std::int64_t> attempt;
  std::string_view subgraph_name;
  PayloadState payload_state = PayloadState::kAbsent;
  std::int64_t payload_id = 0;  // 0: no payload
  std::optional<std::int64_t> compile_row_id() const {
    return compile == nullptr ? std::nullopt : std::optional<std::int64_t>(compile->id);
  }
};

// Everything an ingestor may use. One per load; single-threaded (the typing step).
class IngestContext {
 public:
  virtual ~IngestContext() = default;

  // The value of the record key, strict JSON (NaN → null, last duplicate wins). Valid until the
  // next call of Metadata on this context. kBadJson if the key's value is missing.
  virtual Result<simdjson::dom::element> Metadata() = 0;
  // The payload without its tabs; empty if there is none. Valid until Ingest returns. For a
  // repeated payload this costs a copy: ask contents().OfPayload first.
  virtual std::string_view Payload() = 0;
  // The same, for parsing as JSON: a repeated payload is returned with the TABs of the log, which
  // are white space in JSON. If it is not JSON, call Payload.
  virtual std::string_view PayloadToParse() = 0;
  // The payload as JSON (repaired if need be). Valid until the next call of PayloadJson. kBadJson
  // if it is not JSON, or larger than 32 MiB or 1,000,000 values (an import_log row kPayloadTooLarge
  // has been written then).
  virtual Result<simdjson::dom::element> PayloadJson() = 0;
  // The text of a payload seen earlier in this load, by id; empty if it is not kept any more. Only
  // code and provenance payloads of open graphs are kept: call KeepPayload when such a record is
  // ingested.
  virtual std::string_view KeptPayload(std::int64_t payload_id) = 0;
  virtual void KeepPayload() = 0;
  virtual void ReleasePayload(std::int64_t payload_id) = 0;
  // What PrepareRecord of the family has found out about the current record.
  virtual const PreparedRecord& prepared() const = 0;

  virtual RowBatch& rows() = 0;
  virtual TextPool& texts() = 0;
  virtual ContentRegistry& contents() = 0;
  virtual GraphTracker& graphs() = 0;
  virtual StackPool& stacks() = 0;

  // The next id of a table with an id column; ids of one table ascend by one.
  template <typename Row>
  std::int64_t NextId() {
    return NextId(tables().Find<Row>());
  }

  // The current record was written at about this time (microseconds since the epoch). The
  // difference to its prefix gives the year and zone of the process's prefix times. A chromium
  // event is exact to milliseconds; a time of another basis may be minutes before its record, and
  // the first of them counts only if the process logs no event.
  enum class TimeBasis : std::uint8_t {
    kChromiumEvent,
    kCacheEventTime,
    kCompilationMetrics,
    kLibtraceVersion
  };
  virtual void NoteTime(std::int64_t epoch_us, TimeBasis basis) = 0;
  // time_us of the current record as known so far; nothing if uncalibrated.
  virtual std::optional<std::int64_t> Time() const = 0;

  // Withdraws a row of `table` that ProcessPaused added for this record.
  virtual void Withdraw(std::string_view table, std::int64_t record_id) = 0;

  // Adds an import_log row for the current record.
  virtual void Log(ImportCode code, std::string message) = 0;

  // Shorthands.
  TextId Text(std::string_view text) { return texts().Id(rows(), text); }
  std::optional<TextId> OptionalText(std::string_view text) {
    return texts().OptionalId(rows(), text);
  }

 protected:
  virtual const TableSet& tables() const = 0;
  // 0: no such table.
  virtual std::int64_t NextId(TableId table) = 0;
};

// Turns the records of one family into rows. A family may find out about a record beforehand, on
// any thread: `static void PrepareRecord` of the type PrepareFunction. An error becomes an import_log row (kBadMetadata or
// kBadPayload) and the record itself is kept in any case: return the error, don't log it as well.
class Ingestor {
 public:
  virtual ~Ingestor() = default;
  // Declares the types of its rows before the load starts: tables.Use<CacheEventRow>().
  virtual void Prepare(TableSet& tables) = 0;
  // Called once for an existing database before the load, to take over state (ids are handled by
  // NextId). `database` is open.
  virtual Result<void> Load(Database& database) {
    (void)database;
    return {};
  }
  virtual Result<void> Ingest(const Record& record, IngestContext& context) = 0;
  // A graph of this compile closes: its segment is complete (called for every ingestor, in table
  // order).
  virtual Result<void> GraphClosed(const CompileState& compile, GraphState& graph,
                                   IngestContext& context) {
    (void)compile, (void)graph, (void)context;
    return {};
  }
  // The process's log may continue, and what is known so far is about to be written: adds rows for
  // unfinished items. They are replaced later by rows with the same key, or withdrawn. Not called
  // if a log is read in one go.
  virtual Result<void> ProcessPaused(ProcessState& process, IngestContext& context) {
    (void)process, (void)context;
    return {};
  }
  // The process's log has ended.
  virtual Result<void> ProcessEnded(ProcessState& process, IngestContext& context) {
    (void)process, (void)context;
    return {};
  }
};

// What the kind of a record implies for the compile that it belongs to.
struct KeyTraits {
  // Belongs to no compile, although it may carry a stack. (An event does belong to the stretch of
  // records without ids around it.)
  bool stands_alone = false;
  // Only a compile writes it: without ids it opens a stretch, even where the log carries no stacks.
  bool opens_stretch = false;
  // Is the first record of a compile: after the start or metrics of a compile with the same ids, a
  // new compile begins (torch._dynamo.reset()).
  bool begins_again = false;
};

// A key of a family: a record key, or "artifact/<name>". It may end or begin with '*'
// ("artifact/*_cache_hit", "artifact/vllm_*"): patterns are tried only if no exact key matches, the
// longest first, and have no traits. A key that is claimed twice is a configure error.
struct ArtifactKey {
  std::string_view text;
  KeyTraits traits;
  constexpr ArtifactKey(const char* key) : text(key) {}
};
constexpr ArtifactKey StandsAlone(ArtifactKey key) {
  key.traits.stands_alone = true;
  return key;
}
constexpr ArtifactKey OpensStretch(ArtifactKey key) {
  key.traits.opens_stretch = true;
  return key;
}
constexpr ArtifactKey BeginsAgain(ArtifactKey key) {
  key.traits.begins_again = true;
  return key;
}

// One row of the generated table.
struct Artifact {
  std::string_view stem;
  std::unique_ptr<Ingestor> (*create)();
  std::span<const ArtifactKey> keys;
  PrepareFunction prepare;  // nullptr: none
};

template <typename Type>
constexpr PrepareFunction PrepareFunctionOf() {
  if constexpr (requires { &Type::PrepareRecord; }) {
    return &Type::PrepareRecord;
  } else {
    return nullptr;
  }
}

// At the end of <stem>.cc, inside namespace tlparse: the keys, with their traits as in
// StandsAlone("link").
#define TLPARSE_ARTIFACT(stem, type, ...)                                                       \
  namespace artifacts {                                                                         \
  namespace {                                                                                   \
  constexpr ArtifactKey stem##_keys[] = {__VA_ARGS__};                                          \
  std::unique_ptr<Ingestor> stem##_create() { return std::make_unique<type>(); }                \
  }                                                                                             \
  extern const Artifact stem;                                                                   \
  constinit const Artifact stem{#stem, &stem##_create, stem##_keys, PrepareFunctionOf<type>()}; \
  }

// All families, in alphabetical order of their stems (generated).
std::span<const Artifact* const> AllArtifacts();

}  // namespace tlparse
