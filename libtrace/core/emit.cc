#include <array>
#include <cstring>
#include <exception>
#include <memory>
#include <new>

#include "core/busy.h"
#include "core/clock.h"
#include "core/errno_scope.h"
#include "core/record_shape.h"
#include "core/signal_guard.h"
#include "core/trace_state.h"
#include "core/utf8.h"
#include "libtrace/scope.h"
#include "libtrace/trace.h"
#include "libtrace/traceparent.h"

namespace libtrace {
namespace detail {
namespace {

// What a site writes each time: the prefix after its time, and the record key. Found by comparing
// texts, not addresses: a caller may use memory again for another name.
struct SiteText {
  const Trace* trace = nullptr;  // whose process id and source root are in it; null = none
  uint32_t line = 0;
  std::string file{};
  std::string key{};
  bool is_known_kind = false;
  std::string text{};  // `1234 dir/file.cc:12] {"key": `
};

// Rank and ids of the last record within a compile.
struct ContextText {
  std::optional<uint32_t> rank{};
  CompileId compile_id{};
  uint32_t attempt = 0;
  std::string text{};  // "" = none
};

struct TextCache {
  std::array<SiteText, 16> sites;
  ContextText context;
};

// Memory of one emission, reused by the thread.
struct Scratch {
  PendingRecord record;
  FramedRecord framed;
  std::unique_ptr<TextCache> texts;  // null if it is for one emission only
  bool is_in_use = false;
};

// Destroyed with its thread. Plain pointers around it, because records are emitted after that too.
thread_local Scratch* t_scratch = nullptr;
thread_local bool t_is_thread_ending = false;
struct ScratchOwner {
  ~ScratchOwner() {
    delete t_scratch;
    t_scratch = nullptr;
    t_is_thread_ending = true;
  }
};

// The thread's scratch, or a fresh one for a builder that emits and for a thread that ends.
class ScratchLease {
 public:
  ScratchLease() {
    if (t_scratch == nullptr && !t_is_thread_ending) {
      thread_local ScratchOwner owner;
      auto scratch = std::make_unique<Scratch>();
      scratch->texts = std::make_unique<TextCache>();
      t_scratch = scratch.release();
    }
    is_shared_ = t_scratch != nullptr && !t_scratch->is_in_use;
    scratch_ = is_shared_ ? t_scratch : new Scratch;
    scratch_->is_in_use = true;
    scratch_->record.header.clear();
    scratch_->record.interned_names.clear();
    scratch_->record.payload.Clear();
  }
  ~ScratchLease() {
    if (!is_shared_) {
      delete scratch_;
      return;
    }
    constexpr size_t kKeptSize = size_t{1} << 20;
    if (scratch_->record.header.capacity() > kKeptSize) std::string().swap(scratch_->record.header);
    if (scratch_->record.payload.text().capacity() > kKeptSize)
      scratch_->record.payload = Payload();
    scratch_->is_in_use = false;
  }
  ScratchLease(const ScratchLease&) = delete;
  ScratchLease& operator=(const ScratchLease&) = delete;

  Scratch& operator*() { return *scratch_; }

 private:
  Scratch* scratch_;
  bool is_shared_;
};

void AppendPath(const char* file_name, std::string_view source_root, std::string& out) {
  std::string_view path = file_name == nullptr ? "" : file_name;
  if (!source_root.empty() && path.starts_with(source_root)) {
    path.remove_prefix(source_root.size());
    while (path.starts_with('/')) path.remove_prefix(1);
  }
  if (path.empty()) path = "<unknown>";
  const size_t start = out.size();
  if (const size_t broken = FindBrokenUtf8(path); broken != std::string_view::npos) {
    out += RepairUtf8(path, broken);
  } else {
    out += path;
  }
  for (size_t i = start; i < out.size(); ++i) {
    if (static_cast<unsigned char>(out[i]) < 0x20) out[i] = '_';  // a LF would end the line
  }
}

void AppendNumber(std::string_view name, uint64_t value, std::string& out) {
  char digits[24];
  char* at = digits + sizeof digits;
  do {
    *--at = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  out.append(", \"").append(name).append("\": ");
  out.append(at, static_cast<size_t>(digits + sizeof digits - at));
}

void AppendIds(const CompileId& id, std::string& out) {
  if (id.compiled_autograd_id) {
    AppendNumber(format::kCompiledAutogradId, *id.compiled_autograd_id, out);
  }
  if (id.frame_id) {
    AppendNumber(format::kFrameId, *id.frame_id, out);
    AppendNumber(format::kFrameCompileId, id.frame_compile_id.value_or(0), out);
  }
}

void AppendStack(const Trace& trace, const EmitOptions& options, const CallSite& location,
                 PendingRecord& record) {
  ArrayView<StackFrame> frames = options.stack;
  if (frames.empty()) frames = StackScope::Current();
  Stack own;
  if (frames.empty()) {
    if (trace.options.stacks == StackMode::kOff) return;
    if (trace.options.stacks == StackMode::kBacktrace) own = CaptureStack(32, 2);
    if (own.empty()) own.push_back(FrameOf(location));
    frames = own;
  }
  record.header.append(", \"").append(format::kStack).append("\": ");
  MetadataWriter(record.header, record.interned_names).Frames(frames);
}

void AppendCompile(std::optional<uint32_t> rank, const Context& context, std::string& out) {
  if (rank) AppendNumber(format::kRank, *rank, out);
  AppendIds(context.compile_id, out);
  AppendNumber(format::kAttempt, context.attempt, out);
}

// The same, spelled only when something has changed.
void AppendCompile(std::optional<uint32_t> rank, const Context& context, ContextText& last,
                   std::string& out) {
  if (!last.text.empty() && last.attempt == context.attempt && last.rank == rank &&
      last.compile_id == context.compile_id) {
    out += last.text;
    return;
  }
  last.text.clear();  // stays so if there is no memory
  last.rank = rank;
  last.compile_id = context.compile_id;
  last.attempt = context.attempt;
  const size_t start = out.size();
  AppendCompile(rank, context, out);
  last.text.assign(out, start);
}

void AppendContext(const Trace& trace, const EmitOptions& options, const CallSite& location,
                   TextCache* texts, PendingRecord& record) {
  const std::optional<uint32_t> rank = Rank();
  const Context& context = CurrentContext();
  if (!context.compile_id.empty()) {
    if (texts != nullptr) {
      AppendCompile(rank, context, texts->context, record.header);
    } else {
      AppendCompile(rank, context, record.header);
    }
  } else {
    if (rank) AppendNumber(format::kRank, *rank, record.header);
    if (options.compile_id && !options.compile_id->empty()) {
      AppendIds(*options.compile_id, record.header);
    } else if (options.expects_compile_id) {
      AppendStack(trace, options, location, record);
    }
  }
  if (const std::string_view request = CurrentTraceparent(); !request.empty())
    record.header.append(", \"traceparent\": \"").append(request).append("\"");
  if (!context.subgraph_name.empty()) {
    record.header.append(", \"").append(format::kSubgraphName).append("\": ");
    AppendJsonString(context.subgraph_name, record.header);
  }
}

// False, and nothing appended, if `key` cannot be a record's.
bool AppendSite(const Trace& trace, std::string_view key, const CallSite& location,
                std::string& out) {
  if (key.empty() || format::IsReservedKey(key) || key == format::kStr) return false;
  out.append(trace.pid_text).append(" ");
  AppendPath(location.file, trace.options.source_root, out);
  out.append(":").append(std::to_string(location.line)).append(format::kPrefixEnd).append("{");
  AppendJsonString(key, out);
  out += ": ";
  return true;
}

// The same, spelled only if the site is new or its place was taken by another.
bool AppendSite(const Trace& trace, std::string_view key, const CallSite& location,
                TextCache& texts, bool& is_known_kind, std::string& out) {
  constexpr size_t kMaxSize = 512;  // of what is kept for a site
  const char* const file = location.file == nullptr ? "" : location.file;
  SiteText& site = texts.sites[(location.line * 31 + key.size()) % texts.sites.size()];
  if (site.trace != &trace || site.line != location.line || site.key != key ||
      std::strcmp(site.file.c_str(), file) != 0) {
    const size_t start = out.size();
    if (!AppendSite(trace, key, location, out)) return false;
    is_known_kind = IsKnownKind(key);
    if (out.size() - start > kMaxSize || std::strlen(file) > kMaxSize) return true;
    site.trace = nullptr;
    site.line = location.line;
    site.file = file;
    site.key = key;
    site.is_known_kind = is_known_kind;
    site.text.assign(out, start);
    site.trace = &trace;
    return true;
  }
  is_known_kind = site.is_known_kind;
  out += site.text;
  return true;
}

// Null, or why this cannot be a record.
const char* Build(const Trace& trace, std::string_view key, MetadataBuilder metadata,
                  PayloadBuilder payload, const EmitOptions& options, const CallSite& location,
                  TextCache* texts, PendingRecord& record) {
  record.time_us = NowUs();
  if (payload) payload(record.payload);  // first: an artifact's encoding depends on it
  std::string& header = record.header;
  bool is_known_kind = texts == nullptr;
  const bool is_key = texts != nullptr
                          ? AppendSite(trace, key, location, *texts, is_known_kind, header)
                          : AppendSite(trace, key, location, header);
  if (!is_key) return "a record key is empty or reserved";
  const size_t value_offset = header.size();
  const char* complaint = nullptr;
  {
    MetadataWriter writer(header, record.interned_names);
    if (metadata) metadata(writer);
    writer.Finish();
    if (!writer.wrote_anything()) header += "{}";
    if (is_known_kind) {
      complaint = RecordShapeComplaint(key, std::string_view(header).substr(value_offset));
    }
  }
  if (complaint != nullptr) return complaint;
  if (options.with_context) AppendContext(trace, options, location, texts, record);
  return nullptr;
}

// Counts a loss and reports it with the record's name and the place that emitted it.
void Lose(Trace& trace, LossKind kind, std::string_view name, const char* message,
          const CallSite& location) noexcept {
  try {
    std::string text = "record `";
    text.append(name).append("` (");
    AppendPath(location.file, trace.options.source_root, text);
    text.append(":").append(std::to_string(location.line)).append("): ").append(message);
    trace.ledger.Lost(kind, name, text);
  } catch (...) {  // no memory: without name and place
    trace.ledger.Lost(kind, name, message);
  }
  trace.ledger.Report();
}

// `name` is what a loss of the record is counted under.
void EmitNamed(std::string_view name, std::string_view key, MetadataBuilder metadata,
               PayloadBuilder payload, const EmitOptions& options,
               const CallSite& location) noexcept {
  const ErrnoScope keeps_errno;
  const NotCancelled until_end;
  Trace* const trace = TraceForRecord();
  if (trace == nullptr) return;
  if (t_is_busy) {
    trace->ledger.LostReentrant();
    return;
  }
  // Events are limited by their names, a span as a whole: where they begin.
  if (!trace->limits.empty() && key != format::kChromiumEvent && !trace->limits.Admit(name)) {
    trace->ledger.LeftOut(name);
    return;
  }
  LossKind kind = LossKind::kBuilderFailed;
  const char* message = nullptr;
  try {
    ScratchLease lease;
    Scratch& scratch = *lease;
    scratch.record.name = name;
    try {
      message = Build(*trace, key, metadata, payload, options, location, scratch.texts.get(),
                      scratch.record);
      if (message == nullptr) {
        // A trace that replaced this one meanwhile gets the record; after Stop(), and in a child
        // that a builder forked, there is none.
        Trace* target = CurrentTrace();
        while (target != nullptr && !target->Submit(scratch.record, scratch.framed)) {
          target = CurrentTrace() == target ? nullptr : CurrentTrace();
        }
      } else {
        kind = LossKind::kBadRecordKey;
      }
    } catch (const std::bad_alloc&) {
      message = "no memory to build a record; it is lost and counted";
    } catch (...) {
      message = "a builder threw; the record is lost and counted";
    }
  } catch (...) {
    message = "no memory to build a record; it is lost and counted";
  }
  if (message != nullptr) {
    Lose(*trace, kind, name, message, location);
  }
}

}  // namespace

void EmitRecord(std::string_view key, MetadataBuilder metadata, PayloadBuilder payload,
                const EmitOptions& options, const CallSite& location) noexcept {
  EmitNamed(key, key, metadata, payload, options, location);
}

void EmitArtifact(std::string_view name, std::string_view encoding, PayloadBuilder payload,
                  const EmitOptions& options, const CallSite& location, bool is_json) noexcept {
  const ErrnoScope keeps_errno;
  const NotCancelled until_end;
  const char* complaint = nullptr;
  const auto checked_payload = [&](Payload& target) {
    payload(target);
    if (is_json) return;
    if (encoding != format::kEncodingJson && encoding != format::kEncodingString) {
      complaint = "the encoding is neither json nor string; it is written as string";
    } else if (encoding == format::kEncodingJson && !IsStrictJson(target.view())) {
      complaint = "the encoding is json and the payload is not; it is written as string";
    }
    if (complaint != nullptr) encoding = format::kEncodingString;
  };
  const auto metadata = [&](MetadataWriter& json) {
    json.BeginObject()
        .Field(format::kArtifactName, name)
        .Field(format::kArtifactEncoding, encoding)
        .EndObject();
  };
  EmitNamed(name, format::kArtifact, metadata, checked_payload, options, location);
  Trace* const trace = complaint == nullptr ? nullptr : CurrentTrace();
  if (trace != nullptr) Lose(*trace, LossKind::kBadEncoding, name, complaint, location);
}

}  // namespace detail

MetadataWriter& MetadataWriter::Frames(ArrayView<StackFrame> frames) {
  BeginArray();
  for (const StackFrame& frame : frames) {
    BeginObject()
        .Field(format::kFrameLine, frame.line.value_or(0))  // other readers reject null
        .Field(format::kFrameFunction, frame.function);
    Key(format::kFrameFileName);
    BeforeValue();
    // The id is put here when the record is written.
    names_->push_back({out().size(), frame.file.empty() ? "<unknown>" : frame.file});
    if (frame.source_text) Field(format::kFrameSource, *frame.source_text);
    EndObject();
  }
  EndArray();
  return *this;
}

}  // namespace libtrace
