#include "libtrace/otel/otel_sink.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/errno_scope.h"
#include "core/signal_guard.h"
#include "otel/http_post.h"
#include "otel/span_maker.h"

namespace libtrace {
namespace {

constexpr size_t kSpansPerRequest = 512;

// "partialSuccess": {"rejectedSpans": "3"}; 64-bit numbers are texts in this encoding.
uint64_t RejectedSpans(std::string_view body) {
  constexpr std::string_view kName = "\"rejectedSpans\"";
  size_t at = body.find(kName);
  if (at == std::string_view::npos) return 0;
  at = body.find_first_of("0123456789", at + kName.size());
  uint64_t count = 0;
  for (; at < body.size() && body[at] >= '0' && body[at] <= '9'; ++at)
    count = count * 10 + static_cast<uint64_t>(body[at] - '0');
  return count;
}

// Spans that wait, and the thread that sends them.
class Exporter {
 public:
  explicit Exporter(OtelOptions options) : options_(std::move(options)) {}

  // The thread keeps the object alive.
  static void Add(const std::shared_ptr<Exporter>& exporter, otel::Span span) {
    Exporter& e = *exporter;
    const std::lock_guard lock(e.mutex_);
    if (e.is_closed_ || e.waiting_.size() >= e.options_.max_spans) {
      ++e.dropped_count_;
      return;
    }
    if (!e.is_started_) {
      const detail::AllSignalsBlocked blocked;
      std::thread([exporter] { exporter->Run(); }).detach();
      e.is_started_ = true;
    }
    e.waiting_.push_back(std::move(span));
    if (e.waiting_.size() == kSpansPerRequest) e.work_.notify_one();
  }

  bool Send(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    is_wanted_now_ = true;
    work_.notify_one();
    return done_.wait_for(lock, timeout,
                          [this] { return waiting_.empty() && sending_count_ == 0; });
  }

  void Close() {
    if (is_started()) Send(options_.timeout);
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    // What is being sent is lost, unless an answer still comes while the process lives.
    dropped_count_ += waiting_.size() + sending_count_;
    waiting_.clear();
    work_.notify_one();
  }

  OtelStats stats() const {
    const std::lock_guard lock(mutex_);
    return {sent_count_, dropped_count_, rejected_count_, failed_request_count_};
  }

 private:
  bool is_started() const {
    const std::lock_guard lock(mutex_);
    return is_started_;
  }

  void Run() {
    std::unique_lock lock(mutex_);
    while (!is_closed_) {
      work_.wait_for(lock, options_.interval, [this] {
        return is_closed_ || is_wanted_now_ || waiting_.size() >= kSpansPerRequest;
      });
      try {
        while (!waiting_.empty() && SendSome(lock)) {
        }
      } catch (const std::exception&) {  // no memory
        if (!lock.owns_lock()) lock.lock();
        const size_t count = std::exchange(sending_count_, 0);
        if (!is_closed_) dropped_count_ += count;
      }
      is_wanted_now_ = false;
      done_.notify_all();
    }
  }

  // False: the collector cannot take more now.
  bool SendSome(std::unique_lock<std::mutex>& lock) {
    const auto count = static_cast<std::ptrdiff_t>(std::min(waiting_.size(), kSpansPerRequest));
    std::vector<otel::Span> batch(std::make_move_iterator(waiting_.begin()),
                                  std::make_move_iterator(waiting_.begin() + count));
    waiting_.erase(waiting_.begin(), waiting_.begin() + count);
    sending_count_ = batch.size();
    lock.unlock();
    const otel::HttpAnswer answer =
        otel::HttpPost(options_.host, options_.port, options_.path,
                       otel::TraceRequest(options_.service_name, batch), options_.timeout);
    lock.lock();
    sending_count_ = 0;
    if (is_closed_) dropped_count_ -= batch.size();  // Close took them for lost
    if (answer.status >= 200 && answer.status < 300) {
      const uint64_t rejected = std::min<uint64_t>(RejectedSpans(answer.body), batch.size());
      rejected_count_ += rejected;
      sent_count_ += batch.size() - rejected;
      return true;
    }
    ++failed_request_count_;
    // OTLP: these may be tried again, others not.
    const bool may_retry = answer.status == 0 || answer.status == 429 || answer.status == 502 ||
                           answer.status == 503 || answer.status == 504;
    if (!may_retry) {
      rejected_count_ += batch.size();
      return true;
    }
    const size_t room = options_.max_spans - std::min<size_t>(waiting_.size(), options_.max_spans);
    const size_t kept = is_closed_ ? 0 : std::min(room, batch.size());
    dropped_count_ += batch.size() - kept;
    waiting_.insert(waiting_.begin(),
                    std::make_move_iterator(batch.end() - static_cast<std::ptrdiff_t>(kept)),
                    std::make_move_iterator(batch.end()));
    return false;
  }

  const OtelOptions options_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable work_, done_;
  std::deque<otel::Span> waiting_;
  size_t sending_count_ = 0;
  bool is_started_ = false, is_closed_ = false, is_wanted_now_ = false;
  uint64_t sent_count_ = 0, dropped_count_ = 0, rejected_count_ = 0, failed_request_count_ = 0;
};

class OtelSinkImpl final : public OtelSink {
 public:
  OtelSinkImpl(std::shared_ptr<TraceSink> inner, OtelOptions options)
      : inner_(std::move(inner)),
        options_(std::move(options)),
        exporter_(std::make_shared<Exporter>(options_)) {}

  bool BeginRecord(uint64_t size_bytes) override {
    if (inner_ != nullptr) return inner_->BeginRecord(size_bytes);
    return !std::exchange(is_begun_, true);
  }
  // The parent's thread is not in the child, and its lock may be held: both stay as they are.
  std::shared_ptr<TraceSink> AfterFork() override {
    auto own = inner_ == nullptr ? nullptr : inner_->AfterFork();
    if (inner_ != nullptr && own == nullptr) return nullptr;
    return std::make_shared<OtelSinkImpl>(std::move(own), options_);
  }
  void Write(std::string_view record) override {
    try {
      if (auto span = maker_.Add(record, detail::NowNs()))
        Exporter::Add(exporter_, std::move(*span));
    } catch (const std::exception&) {  // no memory, or no thread: the log is written all the same
    }
    if (inner_ != nullptr) inner_->Write(record);
  }
  void Flush() override {
    if (inner_ != nullptr) inner_->Flush();
  }
  void Close() override {
    if (inner_ != nullptr) inner_->Close();
    exporter_->Close();
  }
  void SetRank(std::optional<uint32_t> rank) override {
    if (inner_ != nullptr) inner_->SetRank(rank);
  }
  std::string path() const override { return inner_ == nullptr ? "" : inner_->path(); }
  OtelStats stats() const override { return exporter_->stats(); }
  bool Send(std::chrono::milliseconds timeout) override { return exporter_->Send(timeout); }

 private:
  const std::shared_ptr<TraceSink> inner_;
  const OtelOptions options_;
  const std::shared_ptr<Exporter> exporter_;
  otel::SpanMaker maker_;
  bool is_begun_ = false;
};

}  // namespace

std::shared_ptr<OtelSink> MakeOtelSink(std::shared_ptr<TraceSink> inner, OtelOptions options) {
  const detail::ErrnoScope keeps_errno;
  return std::make_shared<OtelSinkImpl>(std::move(inner), std::move(options));
}

}  // namespace libtrace
