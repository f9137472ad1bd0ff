// What emitting costs, each beside its baseline in the same run. bench_libtrace.py prints the
// table.
//
// Files go to the directory in LIBTRACE_BENCH_DIR (a tmpfs: the disk is not what is measured).
#define OPENSSL_SUPPRESS_DEPRECATED  // MD5(), as the library uses it

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <openssl/md5.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "libtrace/chromium_event.h"
#include "libtrace/scope.h"
#include "libtrace/trace.h"

namespace {

using libtrace::AsyncMode;

std::string Directory() {
  const char* const directory = std::getenv("LIBTRACE_BENCH_DIR");
  return directory == nullptr ? "/dev/shm/libtrace_bench" : directory;
}

// A trace for the length of a benchmark; files are removed, and a loss is an error.
class Trace {
 public:
  explicit Trace(benchmark::State& state, AsyncMode mode = AsyncMode::kOff) : state_(state) {
    if (state.thread_index() != 0) return;
    std::filesystem::remove_all(Directory());
    libtrace::Options options;
    options.directory = Directory();
    options.async = mode;
    options.queue_size_bytes = uint64_t{4} << 30;  // the cost of pushing, not of waiting
    // Not the whole run: a file of this size is deleted when the next one is full.
    options.rotate_size_bytes = uint64_t{256} << 20;
    options.budget_size_bytes = uint64_t{512} << 20;
    libtrace::Start(std::move(options));
  }
  ~Trace() {
    if (state_.thread_index() != 0) return;
    libtrace::Flush(std::chrono::minutes(1));
    if (libtrace::GetStats().lost_record_count != 0) state_.SkipWithError("records were lost");
    libtrace::Stop();
    std::filesystem::remove_all(Directory());
  }
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

 private:
  benchmark::State& state_;
};

void EmitMetadata(int64_t number) {
  libtrace::Emit("bench_record", [&](libtrace::MetadataWriter& json) {
    json.BeginObject().Field("name", "aten::add").Field("number", number).EndObject();
  });
}

// The bytes that EmitMetadata writes, for the baselines.
std::string RecordBytes() {
  return "V1121 12:00:00.000000 1234 tests/bench/libtrace_bench.cc:65] {\"bench_record\": "
         "{\"name\": "
         "\"aten::add\", \"number\": 123456}, \"frame_id\": 0, \"frame_compile_id\": 0, "
         "\"attempt\": "
         "0}\n";
}

// A file that is begun again before it grows too large.
class File {
 public:
  File() {
    std::filesystem::create_directories(Directory());
    fd_ = open((Directory() + "/baseline").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  }
  ~File() { close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void Write(const std::string& bytes) {
    if (write(fd_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) std::abort();
    size_bytes_ += bytes.size();
    if (size_bytes_ < (size_t{256} << 20)) return;
    size_bytes_ = 0;
    if (ftruncate(fd_, 0) != 0) std::abort();
  }

 private:
  int fd_;
  size_t size_bytes_ = 0;
};

std::string PayloadOf(size_t size_bytes) {
  std::string payload;
  while (payload.size() < size_bytes) payload += "    add = torch.ops.aten.add.Tensor(x, y)\n";
  payload.resize(size_bytes);
  return payload;
}

void EmptyLoop(benchmark::State& state) {
  int64_t number = 0;
  for (auto _ : state) benchmark::DoNotOptimize(++number);
}
BENCHMARK(EmptyLoop);

void DisabledSite(benchmark::State& state) {
  libtrace::Stop();
  int64_t number = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(++number);
    EmitMetadata(number);
  }
}
BENCHMARK(DisabledSite);

void DisabledSpan(benchmark::State& state) {
  libtrace::Stop();
  for (auto _ : state) {
    libtrace::TimedSpan span("span");
    span.Arg("number", 1);
  }
}
BENCHMARK(DisabledSpan);

void WriteOfRecord(benchmark::State& state) {
  File file;
  const std::string bytes = RecordBytes();
  for (auto _ : state) file.Write(bytes);
}
BENCHMARK(WriteOfRecord);

void Record(benchmark::State& state) {
  const Trace trace(state);
  const libtrace::CompileScope scope(libtrace::CompileId::Frame(0));
  int64_t number = 0;
  for (auto _ : state) EmitMetadata(++number);
}
BENCHMARK(Record);

void Md5AndWriteOfPayload(benchmark::State& state) {
  File file;
  const std::string payload = PayloadOf(static_cast<size_t>(state.range(0)));
  unsigned char digest[MD5_DIGEST_LENGTH];
  for (auto _ : state) {
    MD5(reinterpret_cast<const unsigned char*>(payload.data()), payload.size(), digest);
    benchmark::DoNotOptimize(digest);
    file.Write(payload);
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * payload.size()));
}
BENCHMARK(Md5AndWriteOfPayload)->Arg(1 << 20);

void RecordWithPayload(benchmark::State& state) {
  const Trace trace(state);
  const libtrace::CompileScope scope(libtrace::CompileId::Frame(0));
  const std::string payload = PayloadOf(static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    libtrace::EmitArtifact("bench_payload", "string",
                           [&](libtrace::Payload& target) { target.Borrow(payload); });
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * payload.size()));
}
BENCHMARK(RecordWithPayload)->Arg(1 << 20);

// Caller's side only: a fixed number of records, so that the queue never fills.
void AsynchronousRecord(benchmark::State& state) {
  const Trace trace(state, AsyncMode::kBlock);
  const libtrace::CompileScope scope(libtrace::CompileId::Frame(0));
  int64_t number = 0;
  for (auto _ : state) EmitMetadata(++number);
}
BENCHMARK(AsynchronousRecord)->Iterations(1'000'000);

void RecordOfThreads(benchmark::State& state) {
  const Trace trace(state);
  const libtrace::CompileScope scope(libtrace::CompileId::Frame(0));
  int64_t number = 0;
  for (auto _ : state) EmitMetadata(++number);
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}
BENCHMARK(RecordOfThreads)->Threads(1)->Threads(8)->UseRealTime();

void AsynchronousRecordOfThreads(benchmark::State& state) {
  const Trace trace(state, AsyncMode::kBlock);
  const libtrace::CompileScope scope(libtrace::CompileId::Frame(0));
  int64_t number = 0;
  for (auto _ : state) EmitMetadata(++number);
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}
BENCHMARK(AsynchronousRecordOfThreads)->Threads(1)->Threads(8)->Iterations(200'000)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
