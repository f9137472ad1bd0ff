#include <array>
#include <cstring>
#include <exception>
#include <memory>
#include <new>

#include "core/busy.h"
#include "core/clock.h"
#include "core/trace_state.h"
#include "core/utf8.h"
#include "libtrace/scope.h"
#include "libtrace/trace.h"

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
  std::span<const StackFrame> frames = options.stack;
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
                TextCache& texts, std::string& out) {
  constexpr size_t kMaxSize = 512;  // of what is kept for a site
  const char* const file = location.file == nullptr ? "" : location.file;
  SiteText& site = texts.sites[(location.line * 31 + key.size()) % texts.sites.size()];
  if (site.trace != &trace || site.line != location.line || site.key != key ||
      std::strcmp(site.file.c_str(), file) != 0) {
    const size_t start = out.size();
    if (!AppendSite(trace, key, location, out)) return false;
    if (out.size() - start > kMaxSize || std::strlen(file) > kMaxSize) return true;
    site.trace = nullptr;
    site.line = location.line;
    site.file = file;
    site.key = key;
    site.text.assign(out, start);
    site.trace = &trace;
    return true;
  }
  out += site.text;
  return true;
}

// False if `key` cannot be a record's.
bool Build(const Trace& trace, std::string_view key, MetadataBuilder metadata,
           PayloadBuilder payload, const EmitOptions& options, const CallSite& location,
           TextCache* texts, PendingRecord& record) {
  record.time_us = NowUs();
  std::string& header = record.header;
  const bool is_key = texts != nullptr ? AppendSite(trace, key, location, *texts, header)
                                       : AppendSite(trace, key, location, header);
  if (!is_key) return false;
  {
    MetadataWriter writer(header, record.interned_names);
    if (metadata) metadata(writer);
    writer.Finish();
    if (!writer.wrote_anything()) header += "{}";
  }
  if (options.with_context) AppendContext(trace, options, location, texts, record);
  if (payload) payload(record.payload);
  return true;
}

// `name` is what a loss of the record is counted under.
void EmitNamed(std::string_view name, std::string_view key, MetadataBuilder metadata,
               PayloadBuilder payload, const EmitOptions& options,
               const CallSite& location) noexcept {
  Trace* const trace = TraceForRecord();
  if (trace == nullptr) return;
  if (t_is_busy) {
    trace->ledger.LostReentrant();
    return;
  }
  LossKind kind = LossKind::kBuilderFailed;
  const char* message = nullptr;
  try {
    ScratchLease lease;
    Scratch& scratch = *lease;
    scratch.record.name = name;
    try {
      if (Build(*trace, key, metadata, payload, options, location, scratch.texts.get(),
                scratch.record)) {
        Trace* target = trace;
        // A trace that replaced this one meanwhile gets the record; after Stop() there is none.
        while (target != nullptr && !target->Submit(scratch.record, scratch.framed)) {
          target = CurrentTrace() == target ? nullptr : CurrentTrace();
        }
      } else {
        kind = LossKind::kBadRecordKey;
        message = "a record key is empty or reserved";
      }
    } catch (const std::bad_alloc&) {
      message = "no memory to build a record; it is lost and counted";
    } catch (...) {
      message = "a builder of a record threw; the record is lost and counted";
    }
  } catch (...) {
    message = "no memory to build a record; it is lost and counted";
  }
  if (message != nullptr) {
    trace->ledger.Lost(kind, name, message);
    trace->ledger.Report();
  }
}

}  // namespace

void EmitRecord(std::string_view key, MetadataBuilder metadata, PayloadBuilder payload,
                const EmitOptions& options, const CallSite& location) noexcept {
  EmitNamed(key, key, metadata, payload, options, location);
}

void EmitArtifact(std::string_view name, std::string_view encoding, PayloadBuilder payload,
                  const EmitOptions& options, const CallSite& location) noexcept {
  const auto metadata = [&](MetadataWriter& json) {
    json.BeginObject()
        .Field(format::kArtifactName, name)
        .Field(format::kArtifactEncoding, encoding)
        .EndObject();
  };
  EmitNamed(name, format::kArtifact, metadata, payload, options, location);
}

}  // namespace detail

MetadataWriter& MetadataWriter::Frames(std::span<const StackFrame> frames) {
  BeginArray();
  for (const StackFrame& frame : frames) {
    BeginObject()
        .Field(format::kFrameLine, frame.line)
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
