// The trace of this process: switching it on, and emitting records.
//
// One trace per process. It starts at the first emission if the environment requests it
// (libtrace/options.h), or by Start(). All functions may be called from any thread at any time,
// are noexcept, and never fail their caller: what cannot be written is counted (libtrace/loss.h).
// No function is async-signal-safe: call none from a signal handler.
//
//   // The builder runs only if tracing is on.
//   libtrace::Emit("my_record", [&](libtrace::MetadataWriter& json) {
//     json.BeginObject().Field("size", n).EndObject();
//   });
//
// fork(): the child closes its copy of the file, and its first record opens a new one with its own
// identification and interned strings. Records still queued are written by the parent only.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "libtrace/array_view.h"
#include "libtrace/branch.h"
#include "libtrace/call_site.h"
#include "libtrace/compile_id.h"
#include "libtrace/export.h"
#include "libtrace/function_ref.h"
#include "libtrace/json.h"
#include "libtrace/log_format.h"
#include "libtrace/loss.h"
#include "libtrace/options.h"
#include "libtrace/stack.h"

namespace libtrace LIBTRACE_EXPORT {

namespace detail {
// 0 off, 1 on, 2 on with detail. From 3 on: not known yet (environment not looked at, just forked).
extern std::atomic<int> g_level;
int ResolveLevel() noexcept;
}  // namespace detail

// Whether records are written. One relaxed load: below 2 ns when tracing is off.
inline bool IsEnabled() noexcept {
  const int level = detail::g_level.load(std::memory_order_relaxed);
  if (LIBTRACE_LIKELY(level == 0)) return false;
  return (level >= 3 ? detail::ResolveLevel() : level) != 0;
}
// Whether detail records (PyTorch's D class) are wanted as well.
inline bool IsDetailEnabled() noexcept { return IsEnabled() && detail::g_level.load() == 2; }

// Begins to trace with `options`; ends a trace that runs. False (and off) if neither a directory
// nor a sink is given. An unusable directory is not noticed here but at the first record.
// options.rank, if set, replaces the rank of SetRank.
bool Start(Options options) noexcept;
// Writes what is queued, closes the file and switches tracing off, for good unless Start() is
// called. Gives up after Options::max_exit_delay (and 2 s for a synchronous write): a call of a
// sink that hangs may then still run.
void Stop() noexcept;
// Waits until every record emitted before the call has been given to the sink. False if that took
// too long. Not needed when synchronous.
bool Flush(std::chrono::milliseconds timeout = std::chrono::milliseconds(10'000)) noexcept;

// Rank of this process in its job from now on: in every record, and in the name of a file not
// opened yet. Empty = none. Call it when the process group is made (c10d: getRank()).
void SetRank(std::optional<uint32_t> rank) noexcept;
std::optional<uint32_t> Rank() noexcept;
ProvenanceLevel CurrentProvenanceLevel() noexcept;  // kOff when tracing is off
Stats GetStats() noexcept;
// File being written; "" if none is open or the sink is not a file.
std::string LogPath() noexcept;

// The value of a record key being written: a JsonWriter that can also write stack frames.
class MetadataWriter : public JsonWriter {
 public:
  // A file name to be replaced by its interned id when the record is written.
  struct InternedName {
    size_t offset{};  // where in the text the id belongs
    std::string name{};
  };

  MetadataWriter(std::string& out, std::vector<InternedName>& names)
      : JsonWriter(out), names_(&names) {}

  // A list of frames, outermost first, file names interned.
  MetadataWriter& Frames(ArrayView<StackFrame> frames);

 private:
  std::vector<InternedName>* names_;
};

// The payload being built: set one of the two.
class Payload {
 public:
  // Text owned by the library, empty at first; fill it.
  std::string& text() {
    is_set_ = true;
    return text_;
  }
  // Text of the caller that does not change until Emit() returns: saves a copy of a large payload.
  void Borrow(std::string_view text) {
    is_set_ = true;
    borrowed_ = text;
    is_borrowed_ = true;
  }
  // No payload after all: the record gets no has_payload.
  void Clear() {
    text_.clear();
    is_set_ = is_borrowed_ = false;
  }

  // The text, copied only if it was borrowed; leaves an empty text behind.
  std::string TakeText() {
    if (is_borrowed_) return std::string(borrowed_);
    return std::exchange(text_, std::string());
  }

  bool is_set() const { return is_set_; }
  bool is_borrowed() const { return is_borrowed_; }
  // Until this object changes or the borrowed text dies.
  std::string_view view() const { return is_borrowed_ ? borrowed_ : std::string_view(text_); }

 private:
  std::string text_;
  std::string_view borrowed_;
  bool is_set_ = false;
  bool is_borrowed_ = false;
};

using MetadataBuilder = FunctionRef<void(MetadataWriter&)>;
using PayloadBuilder = FunctionRef<void(Payload&)>;

struct EmitOptions {
  // Outside a compile the record then carries a stack (PyTorch: expect_trace_id). False for timed
  // chromium events and records that belong to the process.
  bool expects_compile_id = true;
  // False: no rank, ids or stack at all (PyTorch: suppress_context).
  bool with_context = true;
  // Used when no compile is active on this thread; the record then has ids but no attempt.
  std::optional<CompileId> compile_id{};
  // Instead of the call site, outside a compile. Must live until the call returns.
  ArrayView<StackFrame> stack{};
};

namespace detail {
void EmitRecord(std::string_view key, MetadataBuilder metadata, PayloadBuilder payload,
                const EmitOptions& options, const CallSite& location) noexcept;
// `is_json`: the payload comes from a JsonWriter and need not be checked.
void EmitArtifact(std::string_view name, std::string_view encoding, PayloadBuilder payload,
                  const EmitOptions& options, const CallSite& location,
                  bool is_json = false) noexcept;

// The templates below copy what they pass on once tracing is found to be on: what is passed by
// reference itself would be built in memory before the level is tested. A builder is copied if it
// is a small closure that the caller does not see again.
template <class F>
using Builder = std::conditional_t<!std::is_lvalue_reference_v<F> && !std::is_const_v<F> &&
                                       std::is_trivially_copyable_v<F> && sizeof(F) <= 64,
                                   F, std::add_lvalue_reference_t<F>>;
}  // namespace detail

// Emits one record; `location` becomes its prefix. `metadata(MetadataWriter&)` writes one value, {}
// if it writes none; `payload(Payload&)` may be left out. Neither is called when tracing is off.
// Both run before any lock is taken, on this thread, `payload` first, and may emit records
// themselves. If one throws, the record is lost and counted. So is a record with one of PyTorch's
// keys that lacks the members which its readers need (kBadRecordKey).
template <class Metadata>
void Emit(std::string_view key, Metadata&& metadata, const EmitOptions& options = {},
          CallSite location = CallSite::Current()) noexcept {
  static_assert(std::is_invocable_v<Metadata&, MetadataWriter&>,
                "libtrace: write the metadata as [&](libtrace::MetadataWriter& json) { "
                "json.BeginObject().Field(\"size\", n).EndObject(); }");
  if (LIBTRACE_UNLIKELY(IsEnabled())) {
    detail::Builder<Metadata> build = metadata;
    detail::EmitRecord(key, build, {}, EmitOptions(options), CallSite(location));
  }
}
template <class Metadata, class Payload,
          class = std::enable_if_t<std::is_invocable_v<Payload&, libtrace::Payload&>>>
void Emit(std::string_view key, Metadata&& metadata, Payload&& payload,
          const EmitOptions& options = {}, CallSite location = CallSite::Current()) noexcept {
  static_assert(std::is_invocable_v<Metadata&, MetadataWriter&>,
                "libtrace: write the metadata as [&](libtrace::MetadataWriter& json) { "
                "json.BeginObject().Field(\"size\", n).EndObject(); }");
  if (LIBTRACE_UNLIKELY(IsEnabled())) {
    detail::Builder<Metadata> build = metadata;
    detail::Builder<Payload> build_payload = payload;
    detail::EmitRecord(key, build, build_payload, EmitOptions(options), CallSite(location));
  }
}

// Emits a record of kind `artifact`. Names of your own need a prefix of your own. `encoding` is
// "json" or "string"; other readers fail on anything else and on a json payload that is not JSON
// (strictly: no NaN), so such an artifact is written as "string" and counted as kBadEncoding. A
// json payload is parsed for that; EmitJsonArtifact saves it.
template <class Payload>
void EmitArtifact(std::string_view name, std::string_view encoding, Payload&& payload,
                  const EmitOptions& options = {},
                  CallSite location = CallSite::Current()) noexcept {
  static_assert(std::is_invocable_v<Payload&, libtrace::Payload&>,
                "libtrace: write the payload as [&](libtrace::Payload& payload) { "
                "payload.text() = my_text; }");
  if (LIBTRACE_UNLIKELY(IsEnabled())) {
    detail::Builder<Payload> build = payload;
    detail::EmitArtifact(name, encoding, build, EmitOptions(options), CallSite(location));
  }
}

// The same with a JSON payload written by `build(JsonWriter&)`.
template <class Build>
void EmitJsonArtifact(std::string_view name, JsonStyle style, Build&& build,
                      const EmitOptions& options = {},
                      CallSite location = CallSite::Current()) noexcept {
  static_assert(std::is_invocable_v<Build&, JsonWriter&>,
                "libtrace: write the JSON as [&](libtrace::JsonWriter& json) { "
                "json.BeginObject().Field(\"size\", n).EndObject(); }");
  if (LIBTRACE_UNLIKELY(IsEnabled())) {
    detail::Builder<Build> builder = build;
    auto payload = [&](Payload& target) {
      JsonWriter json(target.text(), style);
      builder(json);
      json.Finish();
    };
    detail::EmitArtifact(name, format::kEncodingJson, payload, EmitOptions(options),
                         CallSite(location), true);
  }
}

}  // namespace LIBTRACE_EXPORT
