// The bytes of a structured trace log, in one place for the writer (libtrace) and the reader
// (tlparse).
//
// Header-only, no dependency, no allocation except where a std::string is returned. Grammar, worked
// example and what a reader must tolerate: libtrace/FORMAT.md. Origin of every name: PyTorch's
// torch/_logging/_internal.py and torch/_logging/structured.py.
//
//   V1121 08:30:01.125000 4242 train.cc:304] {"dynamo_start": {...}, "rank": 0, "frame_id": 0, ...}
//   | |    |               |    |        |   `-- envelope: one JSON object on one line, pure ASCII
//   | |    |               |    |        `-- 1-based line of the call that emitted the record
//   | |    |               |    `-- file of that call
//   | |    |               `-- process id
//   | |    `-- local time, always six digits of fraction
//   | `-- local month and day; no year, no zone
//   `-- level, always V in a trace record
//   <TAB>payload line                                  zero or more
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace libtrace::format {

// ---- Prefix ---------------------------------------------------------------------------------

inline constexpr char kTraceLevel = 'V';
inline constexpr std::string_view kLevels = "VIWEC";  // DEBUG INFO WARNING ERROR CRITICAL
inline constexpr std::string_view kPrefixEnd = "] ";  // between the line number and the envelope
inline constexpr int kDateDigits = 4;                 // MMDD
inline constexpr int kFractionDigits = 6;             // microseconds
// Log collectors that merge ranks put this, a rank and "]:" before each line.
inline constexpr std::string_view kMergedRankPrefix = "[rank";

// Prefix values above this are thread ids of logs of early 2024, not process ids (Linux's PID_MAX).
inline constexpr uint64_t kMaxProcessId = 4'194'304;

// ---- Envelope -------------------------------------------------------------------------------

inline constexpr std::string_view kRank = "rank";
inline constexpr std::string_view kCompiledAutogradId = "compiled_autograd_id";
inline constexpr std::string_view kFrameId = "frame_id";
inline constexpr std::string_view kFrameCompileId = "frame_compile_id";
inline constexpr std::string_view kAttempt = "attempt";
inline constexpr std::string_view kSubgraphName = "subgraph_name";
inline constexpr std::string_view kStack = "stack";
inline constexpr std::string_view kHasPayload = "has_payload";

// Members other than the record key, in the order in which they are written. Readers must not rely
// on it.
inline constexpr std::string_view kEnvelopeFields[] = {
    kRank,    kCompiledAutogradId, kFrameId,    kFrameCompileId, kStack,
    kAttempt, kSubgraphName,       kHasPayload,
};

// Names that PyTorch 2.14 refuses as record keys. kStack and kHasPayload are not in its list and
// are just as unusable.
inline constexpr std::string_view kReservedFields[] = {
    kRank,      kCompiledAutogradId, kFrameId,   kFrameCompileId, kAttempt,
    "severity", "timestamp",         "pathname", "thread",        kSubgraphName,
};

constexpr bool IsEnvelopeField(std::string_view name) {
  for (std::string_view field : kEnvelopeFields) {
    if (field == name) return true;
  }
  return false;
}

// True for every name that cannot be a record key.
constexpr bool IsReservedKey(std::string_view name) {
  for (std::string_view field : kReservedFields) {
    if (field == name) return true;
  }
  return name == kStack || name == kHasPayload;
}

// Members of a stack frame (an element of `stack` or `user_stack`, outermost call first).
inline constexpr std::string_view kFrameLine = "line";  // int or null
inline constexpr std::string_view kFrameFunction = "name";
inline constexpr std::string_view kFrameFileName = "filename";  // id of an interned string
inline constexpr std::string_view kFrameSource = "loc";         // text of the line, or null
inline constexpr int kNoFileName = -1;  // only ever read, never written by us

// ---- Record keys ----------------------------------------------------------------------------

inline constexpr std::string_view kStr = "str";  // ["<text>", <id>]: defines one interned string
inline constexpr std::string_view kArtifact = "artifact";
inline constexpr std::string_view kArtifactName = "name";
inline constexpr std::string_view kArtifactEncoding = "encoding";
inline constexpr std::string_view kEncodingJson = "json";
inline constexpr std::string_view kEncodingString = "string";
inline constexpr std::string_view kChromiumEvent = "chromium_event";
inline constexpr std::string_view kDynamoStart = "dynamo_start";
inline constexpr std::string_view kDynamoOutputGraph = "dynamo_output_graph";
inline constexpr std::string_view kInductorOutputCode = "inductor_output_code";
inline constexpr std::string_view kGraphDump = "graph_dump";
inline constexpr std::string_view kDumpFile = "dump_file";
inline constexpr std::string_view kLink = "link";
inline constexpr std::string_view kCompilationMetrics = "compilation_metrics";
inline constexpr std::string_view kBackwardPrefix = "bwd_";     // of kCompilationMetrics
inline constexpr std::string_view kRuntimeSuffix = "_runtime";  // of kCompilationMetrics

// Artifact names that carry a cache lookup are `<layer>` followed by one of these.
inline constexpr std::string_view kCacheHitSuffix = "_cache_hit";
inline constexpr std::string_view kCacheMissSuffix = "_cache_miss";
inline constexpr std::string_view kCacheBypassSuffix = "_cache_bypass";
inline constexpr std::string_view kCacheDisabledSuffix = "_cache_disabled";  // instant events only

// Identification of the writer: always the second record of a file, outside any context.
inline constexpr std::string_view kTorchVersion = "torch_version";        // PyTorch >= 2.14
inline constexpr std::string_view kLibtraceVersion = "libtrace_version";  // libtrace
// What libtrace could not write, see libtrace/loss.h.
inline constexpr std::string_view kLibtraceLoss = "libtrace_loss";

// ---- Payload --------------------------------------------------------------------------------

inline constexpr char kPayloadIndent = '\t';
inline constexpr size_t kPayloadHashSize =
    32;  // lower-case hex MD5 of the payload before indenting
inline constexpr std::string_view kEmptyPayloadHash = "d41d8cd98f00b204e9800998ecf8427e";

// Appends `payload` as payload lines: every piece between LFs, empty ones too, as TAB piece LF.
// Lines end at LF (0x0A) only; CR, NUL, U+2028 and all else pass through.
inline void AppendPayloadLines(std::string_view payload, std::string& out) {
  for (;;) {
    const size_t end = payload.find('\n');
    out += kPayloadIndent;
    out += payload.substr(0, end);
    out += '\n';
    if (end == std::string_view::npos) return;
    payload.remove_prefix(end + 1);
  }
}

// The inverse. `lines` is whole payload lines; the LF of the last one may be missing (truncated
// file).
inline std::string JoinPayloadLines(std::string_view lines) {
  std::string payload;
  payload.reserve(lines.size());
  bool is_first = true;
  while (!lines.empty()) {
    const size_t end = lines.find('\n');
    std::string_view line = lines.substr(0, end);
    if (!line.empty() && line.front() == kPayloadIndent) line.remove_prefix(1);
    if (!is_first) payload += '\n';
    is_first = false;
    payload += line;
    if (end == std::string_view::npos) break;
    lines.remove_prefix(end + 1);
  }
  return payload;
}

// ---- File name ------------------------------------------------------------------------------

inline constexpr std::string_view kFileNamePrefix = "dedicated_log_torch_trace_";
inline constexpr std::string_view kFileNameRank = "rank_";
inline constexpr std::string_view kFileNameExtension = ".log";
inline constexpr size_t kFileNameRandomSize = 8;
inline constexpr std::string_view kFileNameAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789_";

struct FileName {
  std::optional<uint32_t> rank;
  std::string_view random;  // 8 characters; empty in the renamed form `..._rank_<N>.log`
};

// Parses a file's base name; nullopt if it is not one of a structured trace. Views into `name`.
inline std::optional<FileName> ParseFileName(std::string_view name) {
  if (name.substr(0, kFileNamePrefix.size()) != kFileNamePrefix) return std::nullopt;
  if (name.size() < kFileNamePrefix.size() + kFileNameExtension.size()) return std::nullopt;
  if (name.substr(name.size() - kFileNameExtension.size()) != kFileNameExtension)
    return std::nullopt;
  name.remove_prefix(kFileNamePrefix.size());
  name.remove_suffix(kFileNameExtension.size());
  FileName result;
  auto is_random = [](std::string_view text) {
    return text.size() == kFileNameRandomSize &&
           text.find_first_not_of(kFileNameAlphabet) == std::string_view::npos;
  };
  if (name.substr(0, kFileNameRank.size()) == kFileNameRank) {
    std::string_view rest = name.substr(kFileNameRank.size());
    uint64_t rank = 0;
    size_t digits = 0;
    while (digits < rest.size() && rest[digits] >= '0' && rest[digits] <= '9' &&
           rank <= UINT32_MAX) {
      rank = rank * 10 + static_cast<uint64_t>(rest[digits] - '0');
      ++digits;
    }
    if (digits > 0 && rank <= UINT32_MAX) {
      result.rank = static_cast<uint32_t>(rank);
      rest.remove_prefix(digits);
      if (rest.empty()) return result;
      if (rest.front() == '_' && is_random(rest.substr(1))) {
        result.random = rest.substr(1);
        return result;
      }
      result.rank.reset();  // fall through: `rank_12x` is a legal random part of an unranked file
    }
  }
  if (!is_random(name)) return std::nullopt;
  result.random = name;
  return result;
}

inline std::string FormatFileName(std::optional<uint32_t> rank, std::string_view random) {
  std::string name(kFileNamePrefix);
  if (rank) name.append(kFileNameRank).append(std::to_string(*rank)).append("_");
  return name.append(random).append(kFileNameExtension);
}

}  // namespace libtrace::format
