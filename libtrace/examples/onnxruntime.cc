// An adapter for ONNX Runtime: what optimizing a model takes and whether a cache had it, each call of the session, and what its nodes took.
// Built where ONNX Runtime's headers are (Debian 13: libonnxruntime-dev).
//
// usage: TORCH_TRACE=FOLDER libtrace_example_onnxruntime MODEL.onnx CACHE_FOLDER [CALLS]      a model of one float input, the dimensions known
#include <libtrace/artifacts/graph_execution.h>
#include <libtrace/artifacts/measured_runtime.h>
#include <libtrace/cache/compile_cache.h>
#include <libtrace/chromium_event.h>
#include <libtrace/compile.h>
#include <libtrace/trace.h>
#include <onnxruntime_cxx_api.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class TracedSession {
 public:
  TracedSession(Ort::Env& env, const std::string& model, const std::string& folder)
      : folder_(folder), cache_({.layer = "acme_onnxruntime", .directory = folder}) {
    libtrace::Compile compile(frame_, {.function = model, .file = model, .line = 1});
    compile_id_ = compile.id();
    const std::string bytes = ReadFile(model);
    const libtrace::CacheKey key = libtrace::CacheKeyBuilder("o")
                                       .AddContent("model", model, bytes)
                                       .Add("onnxruntime", Ort::GetVersionString())
                                       .Build();
    const libtrace::CacheResult optimized = cache_.GetOrCompile(key, {}, [&] {
      return libtrace::CompileOutput{.entry = {.artifact = Optimized(env, bytes)}, .bypass = {}};
    });
    const libtrace::TimedSpan span("onnxruntime_session");
    Ort::SessionOptions options;
    options.SetGraphOptimizationLevel(ORT_DISABLE_ALL);  // it has been optimized
    if (libtrace::IsEnabled()) options.EnableProfiling((folder_ + "/profile").c_str());
    session_.emplace(env, optimized.entry.artifact.data(), optimized.entry.artifact.size(),
                     options);
  }

  ~TracedSession() {
    if (!libtrace::IsEnabled()) return;
    Ort::AllocatorWithDefaultOptions allocator;
    const std::string path = session_->EndProfilingAllocated(allocator).get();
    EmitNodes(ReadFile(path));
    unlink(path.c_str());
  }

  std::vector<Ort::Value> Run(const Ort::Value& input) {
    Ort::AllocatorWithDefaultOptions allocator;
    const auto in = session_->GetInputNameAllocated(0, allocator),
               out = session_->GetOutputNameAllocated(0, allocator);
    const char *ins[] = {in.get()}, *outs[] = {out.get()};
    const auto start = std::chrono::steady_clock::now();
    std::vector<Ort::Value> results = session_->Run(Ort::RunOptions(), ins, &input, 1, outs, 1);
    calls_.Executed(compile_id_, "forward",
                    std::chrono::duration_cast<std::chrono::nanoseconds>(
                        std::chrono::steady_clock::now() - start)
                        .count());
    return results;
  }

  std::vector<int64_t> InputShape() const {
    return session_->GetInputTypeInfo(0).GetTensorTypeAndShapeInfo().GetShape();
  }

 private:
  std::string Optimized(Ort::Env& env, const std::string& bytes) {
    const libtrace::TimedSpan span("onnxruntime_optimize");
    const std::string path = folder_ + "/optimized." + std::to_string(getpid());
    Ort::SessionOptions options;
    options.SetGraphOptimizationLevel(ORT_ENABLE_EXTENDED);  // what does not depend on the machine
    options.SetOptimizedModelFilePath(path.c_str());
    const Ort::Session session(env, bytes.data(), bytes.size(), options);
    std::string optimized = ReadFile(path);
    unlink(path.c_str());
    return optimized;
  }

  // ONNX Runtime's profile has a complete event for each run of a node: {"cat" : "Node", …, "dur" :12, …, "name" :"gemm_kernel_time", …}.
  void EmitNodes(const std::string& profile) {
    static const std::regex event(
        R"re("cat"\s*:\s*"Node"[^{]*?"dur"\s*:\s*(\d+)[^{]*?"name"\s*:\s*"([^"]*)_kernel_time")re");
    std::map<std::string, libtrace::MeasuredOp> ops;
    for (std::sregex_iterator at(profile.begin(), profile.end(), event), end; at != end; ++at) {
      libtrace::MeasuredOp& op = ops[(*at)[2]];
      const double ns = std::stod((*at)[1]) * 1000;
      op.name = (*at)[2];
      op.min_ns = op.count == 0 ? ns : std::min(op.min_ns, ns);
      op.max_ns = std::max(op.max_ns, ns);
      op.total_ns += ns;
      ++op.count;
    }
    std::vector<libtrace::MeasuredOp> list;
    for (auto& [name, op] : ops) list.push_back(std::move(op));
    const libtrace::CompileScope scope(compile_id_);
    libtrace::EmitMeasuredRuntime(list, "cpu");
  }

  std::string folder_;
  libtrace::CompileCache cache_;
  libtrace::Frame frame_;
  libtrace::CompileId compile_id_;
  libtrace::GraphExecutionOrder calls_{
      libtrace::GraphExecutionOrder::Options{.per_execution = true}};
  std::optional<Ort::Session> session_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  Ort::Env env(ORT_LOGGING_LEVEL_ERROR, "libtrace");
  TracedSession session(env, argv[1], argv[2]);
  std::vector<int64_t> shape = session.InputShape();
  size_t size = 1;
  for (const int64_t dimension : shape) size *= static_cast<size_t>(dimension);
  std::vector<float> values(size, 0.5F);
  const Ort::MemoryInfo memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  const Ort::Value input =
      Ort::Value::CreateTensor<float>(memory, values.data(), size, shape.data(), shape.size());
  for (int call = 0; call < (argc > 3 ? std::atoi(argv[3]) : 3); ++call)
    std::printf("%g\n", static_cast<double>(session.Run(input).at(0).GetTensorData<float>()[0]));
}
