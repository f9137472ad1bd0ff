#include "core/record_writer.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <exception>
#include <new>
#include <thread>

#include "core/busy.h"
#include "core/clock.h"
#include "core/digest.h"
#include "libtrace/json.h"
#include "libtrace/log_format.h"

namespace libtrace::detail {
namespace {

constexpr int kMaxCloseWaitMs = 2000;

// The sink could not begin the record: the ledger counts this apart from a failed write.
struct OpenFailed {
  std::string message;
};

std::string HostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return {};
  return name.data();
}

std::string ProgramName() {
  std::array<char, 4096> path{};
  const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
  if (size <= 0) return {};
  const std::string_view text(path.data(), static_cast<size_t>(size));
  return std::string(text.substr(text.rfind('/') + 1));
}

}  // namespace

RecordWriter::RecordWriter(std::shared_ptr<Sink> sink, std::string pid_text, LossLedger& ledger)
    : sink_(std::move(sink)),
      trace_sink_(dynamic_cast<TraceSink*>(sink_.get())),
      pid_text_(std::move(pid_text)),
      ledger_(ledger) {}

bool RecordWriter::Write(const PendingRecord& record, FramedRecord& framed) noexcept {
  LossKind kind = LossKind::kWriteFailed;
  const char* message = nullptr;
  std::string text;
  try {
    bool was_repaired = false;
    const bool takes_parts = trace_sink_ != nullptr && trace_sink_->TakesParts();
    framed.Frame(record, takes_parts, was_repaired);  // hashing needs no lock
    if (was_repaired) counters_.repaired_payload_count.fetch_add(1, std::memory_order_relaxed);
    const BusyScope busy;
    const std::lock_guard lock(mutex_);
    if (only_thread_ != std::thread::id() && only_thread_ != std::this_thread::get_id()) {
      // Not reported from here: the host's callback may be gone already.
      ledger_.Lost(LossKind::kNotWrittenAtExit, record.name,
                   "the process ends; records of its other threads are lost");
      return true;
    }
    if (is_closed_) return false;
    WriteLocked(record, framed);
  } catch (const OpenFailed& error) {
    kind = LossKind::kOpenFailed;
    text = error.message;
    message = text.c_str();
  } catch (const std::bad_alloc&) {
    kind = LossKind::kBuilderFailed;
    message = "no memory for a record; it is lost and counted";
  } catch (const std::exception& error) {
    try {
      text = error.what();
    } catch (...) {
    }
    message = text.c_str();
  } catch (...) {
    message = "a sink threw something that is not an exception; records are lost and counted";
  }
  framed.Shrink();
  if (message != nullptr) ledger_.Lost(kind, record.name, message);
  ledger_.Report();
  return true;
}

void RecordWriter::WriteLocked(const PendingRecord& record, FramedRecord& framed) {
  record_time_us_ = record.time_us;
  BeginRecord(framed.size_bytes());
  if (record.interned_names.empty()) {
    WriteFramed(framed.Finish(record.header), framed);
  } else {
    WriteFramed(framed.Finish(WithIds(record)), framed);
  }
  if (ledger_.has_unlogged()) WriteLosses();
}

void RecordWriter::BeginRecord(uint64_t size_bytes) {
  bool is_new_file = !is_begun_;
  if (trace_sink_ != nullptr) {
    try {
      is_new_file = trace_sink_->BeginRecord(size_bytes);
    } catch (const std::exception& error) {
      throw OpenFailed{error.what()};
    }
  }
  is_begun_ = true;
  if (!is_new_file) return;
  interned_.clear();
  is_identified_ = false;
  counters_.file_count.fetch_add(1, std::memory_order_relaxed);
}

std::string RecordWriter::WithIds(const PendingRecord& record) {
  std::string header;
  header.reserve(record.header.size() + record.interned_names.size() * 10);
  size_t copied = 0;
  for (const InternedName& name : record.interned_names) {
    header.append(record.header, copied, name.offset - copied);
    header += std::to_string(Intern(name.name));
    copied = name.offset;
  }
  return header.append(record.header, copied);
}

uint32_t RecordWriter::Intern(const std::string& name) {
  if (const auto it = interned_.find(name); it != interned_.end()) return it->second;
  const auto id = static_cast<uint32_t>(interned_.size());
  std::string record = OwnPrefix(__LINE__);
  record.append("{\"").append(format::kStr).append("\": [");
  AppendJsonString(name, record);
  record.append(", ").append(std::to_string(id)).append("]}\n");
  WriteBytes(record);
  interned_.emplace(name, id);  // only now: an id that is not in the log must not be used
  return id;
}

void RecordWriter::WriteFramed(std::string_view start, FramedRecord& framed) {
  if (!framed.has_parts()) return WriteBytes(start);
  uint64_t size_bytes = start.size();
  trace_sink_->WritePart(start, false);
  while (framed.has_parts()) {
    const std::string_view part = framed.NextPart();
    trace_sink_->WritePart(part, !framed.has_parts());
    size_bytes += part.size();
  }
  CountWritten(size_bytes);
}

void RecordWriter::WriteBytes(std::string_view bytes) {
  sink_->Write(bytes);
  CountWritten(bytes.size());
}

void RecordWriter::CountWritten(uint64_t size_bytes) {
  counters_.record_count.fetch_add(1, std::memory_order_relaxed);
  counters_.size_bytes.fetch_add(size_bytes, std::memory_order_relaxed);
  if (!is_identified_) {
    is_identified_ = true;
    WriteIdentification();
  }
}

std::string RecordWriter::OwnPrefix(int line) const {
  std::string prefix(kPrefixTimeSize, ' ');
  PutPrefixTime(record_time_us_, prefix.data());
  return prefix.append(pid_text_)
      .append(" libtrace/core/record_writer.cc:")
      .append(std::to_string(line))
      .append(format::kPrefixEnd);
}

void RecordWriter::WriteOwnArtifact(std::string_view name, std::string_view payload, int line) {
  std::string record = OwnPrefix(line);
  record.append("{\"artifact\": {\"name\": \"").append(name);
  record.append("\", \"encoding\": \"json\"}, \"has_payload\": \"");
  record.append(Md5Hex(payload)).append("\"}\n");
  format::AppendPayloadLines(payload, record);
  WriteBytes(record);
}

void RecordWriter::WriteIdentification() {
  const int64_t now_ns = NowNs();
  std::string payload;
  JsonWriter json(payload, JsonStyle::kLinePerToken);
  json.BeginObject()
      .Field("libtrace_version", LIBTRACE_VERSION)
      .Field("language", "C++")
      .Field("program", ProgramName())
      .Field("host", HostName())
      .Field("time_unix_ns", now_ns)
      .Field("utc_offset_s", UtcOffsetS(now_ns / 1'000'000'000))
      .EndObject();
  WriteOwnArtifact(format::kLibtraceVersion, payload, __LINE__);
}

void RecordWriter::WriteLosses() noexcept {
  try {
    const std::string payload = ledger_.TakeUnlogged();
    if (!payload.empty()) WriteOwnArtifact(format::kLibtraceLoss, payload, __LINE__);
  } catch (const std::exception& error) {
    ledger_.Lost(LossKind::kWriteFailed, format::kLibtraceLoss, error.what());
  } catch (...) {
    ledger_.Lost(LossKind::kWriteFailed, format::kLibtraceLoss, "a sink threw");
  }
}

void RecordWriter::SetRank(std::optional<uint32_t> rank) noexcept {
  if (t_is_busy || trace_sink_ == nullptr) return;
  const BusyScope busy;
  const std::lock_guard lock(mutex_);
  trace_sink_->SetRank(rank);
}

std::unique_lock<std::mutex> RecordWriter::LockSoon() noexcept {
  std::unique_lock lock(mutex_, std::defer_lock);
  for (int i = 0; !lock.try_lock() && i < kMaxCloseWaitMs; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return lock;
}

void RecordWriter::LeaveToThisThread() noexcept {
  if (t_is_busy) return;
  const BusyScope busy;
  if (const auto lock = LockSoon()) only_thread_ = std::this_thread::get_id();
}

void RecordWriter::Close() noexcept {
  if (t_is_busy) return;
  const BusyScope busy;
  const auto lock = LockSoon();
  if (!lock || is_closed_) return;  // without the lock: a write hangs, its file stays open
  is_closed_ = true;
  record_time_us_ = NowUs();
  if (is_begun_ && ledger_.has_unlogged_at_end()) WriteLosses();
  try {
    sink_->Flush();
    if (trace_sink_ != nullptr) trace_sink_->Close();
  } catch (...) {  // nothing more can be done for a sink that is given up
  }
}

std::string RecordWriter::path() noexcept {
  if (t_is_busy || trace_sink_ == nullptr) return {};
  const BusyScope busy;
  const std::lock_guard lock(mutex_);
  try {
    return trace_sink_->path();
  } catch (...) {
    return {};
  }
}

}  // namespace libtrace::detail
