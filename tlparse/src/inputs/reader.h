// The interface of readers of profiles and recorder dumps, and the context that they are given.
//
// A reader reads one file once, as a stream, and adds rows with the measured values of the file.
// Joins with the logs are made afterwards, from the database (join.h). Damage is a row of
// import_log, never a failure; nothing in a file is executed, and memory is bounded for any
// file.
//
// To add one: a file <kind>_reader.cc with a class, a function that makes it, declared at the end
// of this header, and a line in readers.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/input.h"
#include "base/result.h"
#include "inputs/find_inputs.h"
#include "log/import_code.h"
#include "store/database.h"
#include "store/import_log.h"
#include "store/row_batch.h"
#include "store/text_pool.h"

namespace tlparse {

// Options of a load for readers.
struct RuntimeOptions {
  bool keep_python_frames = false;  // of profiles: all, not only those of generated code
};

// The file's row of `profile`, filled in while it is read.
struct ProfileFacts {
  std::string_view kind;  // kineto, flight_recorder, …: as in the column; set by the reader
  std::optional<std::int64_t> rank;
  std::optional<std::int64_t> pid;
  std::optional<std::int64_t> world_size;
  std::optional<std::int64_t> start_ns;  // of the first and the last thing measured
  std::optional<std::int64_t> end_ns;
  std::int64_t event_count = 0;
  std::int64_t kept_count = 0;
  std::string host;
  std::string format_version;
  std::string metadata;  // JSON; empty: NULL
};

// One file being read. Not thread-safe.
class RuntimeContext {
 public:
  virtual ~RuntimeContext() = default;

  virtual const RuntimeInput& input() const = 0;
  virtual const RuntimeOptions& options() const = 0;
  virtual std::int64_t run_id() const = 0;
  virtual std::int64_t profile_id() const = 0;
  virtual ProfileFacts& facts() = 0;

  // The file's bytes, decompressed; they are counted and hashed on the way. Damaged compressed data
  // ends like a file that is cut, with a row of import_log.
  virtual Result<std::size_t> Read(char* buffer, std::size_t capacity) = 0;

  // The compressed data was found damaged: what was read so far may be wrong where it ends.
  virtual bool is_damaged() const = 0;

  // Add rows here; call Flush between rows from time to time (cheap unless the batch is full). It
  // may write the batch, after which text ids stay valid but text that was not copied must not be
  // used.
  virtual RowBatch& rows() = 0;
  virtual Result<void> Flush() = 0;
  // Writes the batch even if it is small. Call before reading or changing rows in the database.
  virtual Result<void> Write() = 0;
  virtual std::int64_t NextId(TableId table) = 0;  // tables with an `id`
  template <typename Row>
  std::int64_t NextId() {
    return NextId(rows().TableOf<Row>());
  }
  virtual TextPool& texts() = 0;
  // For queries of the logs of this and earlier loads; rows of this file may not be written yet.
  virtual Database& database() = 0;

  // For files that are several profiles: what follows is that of a part, "<path>#<name>", with facts of
  // its own. The whole file must have been read; the first call comes before any row and fact.
  virtual Result<void> BeginPart(std::string_view name) = 0;

  // A row of import_log about this file. `text`: the bytes concerned, shortened.
  virtual void Log(ImportCode code, std::string_view message, ImportPlace place = {},
                   std::string_view text = {}, std::int64_t line_count = 1) = 0;

  TextId Text(std::string_view text) { return texts().Id(rows(), text); }
  std::optional<TextId> OptionalText(std::string_view text) {
    return texts().OptionalId(rows(), text);
  }
};

class RuntimeReader {
 public:
  virtual ~RuntimeReader() = default;
  // Declares the types of its rows before the load starts: tables.Use<OpRunRow>().
  virtual void Prepare(TableSet& tables) = 0;
  // Reads the whole file. False: it is of another kind (a Chrome trace that is not a profile) and
  // no row was added; the file is then skipped, with context.facts().kind as the reason. Errors are
  // the database's; problems of the file are logged.
  virtual Result<bool> Read(RuntimeContext& context) = 0;
};

// Whether there is a reader for such files.
bool HasRuntimeReader(InputKind kind);
// nullptr: none.
std::unique_ptr<RuntimeReader> MakeRuntimeReader(InputKind kind);
// Every kind that has a reader.
std::vector<InputKind> RuntimeKinds();

// The readers.
std::unique_ptr<RuntimeReader> MakeKinetoReader();
std::unique_ptr<RuntimeReader> MakeRecorderReader();
std::unique_ptr<RuntimeReader> MakeMemoryReader();
std::unique_ptr<RuntimeReader> MakePackageReader();
std::unique_ptr<RuntimeReader> MakeKernelInformationReader();
std::unique_ptr<RuntimeReader> MakeNsysReader();
std::unique_ptr<RuntimeReader> MakeTritonparseReader();
std::unique_ptr<RuntimeReader> MakeTorchLogsReader();
std::unique_ptr<RuntimeReader> MakeRunFileReader();
std::unique_ptr<RuntimeReader> MakeNcclRasReader();
std::unique_ptr<RuntimeReader> MakeDebugServerReader();

}  // namespace tlparse
