// An adapter for TensorRT: what building an engine takes and whether a cache had it, each call of the
// engine, and what its layers took. Built where TensorRT (10 and newer) and the CUDA toolkit are.
// usage: TORCH_TRACE=FOLDER libtrace_example_tensorrt MODEL.onnx CACHE_FOLDER [CALLS]
// (the dimensions of the model are known)
#include <NvInfer.h>
#include <NvOnnxParser.h>
#include <cuda_runtime_api.h>
#include <libtrace/artifacts/graph_execution.h>
#include <libtrace/artifacts/measured_runtime.h>
#include <libtrace/cache/compile_cache.h>
#include <libtrace/chromium_event.h>
#include <libtrace/compile.h>
#include <libtrace/trace.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

class Logger final : public nvinfer1::ILogger {
  void log(Severity severity, const char* text) noexcept override {
    if (severity <= Severity::kWARNING) std::fprintf(stderr, "TensorRT: %s\n", text);
  }
};

// Times of layers on the GPU, one more for each call.
class Profiler final : public nvinfer1::IProfiler {
 public:
  void reportLayerTime(const char* layer, float ms) noexcept override {
    libtrace::MeasuredOp& op = ops_[layer];
    const double ns = static_cast<double>(ms) * 1e6;
    op.name = layer;
    op.min_ns = op.count == 0 ? ns : std::min(op.min_ns, ns);
    op.max_ns = std::max(op.max_ns, ns);
    op.total_ns += ns;
    ++op.count;
  }
  void Emit() const {
    std::vector<libtrace::MeasuredOp> list;
    for (const auto& [layer, op] : ops_) list.push_back(op);
    libtrace::EmitMeasuredRuntime(list, "cuda");
  }

 private:
  std::map<std::string, libtrace::MeasuredOp> ops_;
};

class TracedEngine {
 public:
  TracedEngine(const std::string& model, const std::string& folder)
      : cache_({.layer = "acme_tensorrt", .directory = folder}) {
    libtrace::Compile compile(frame_, {.function = model, .file = model, .line = 1});
    compile_id_ = compile.id();
    std::ifstream file(model, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    cudaDeviceProp gpu{};
    cudaGetDeviceProperties(&gpu, 0);
    const libtrace::CacheKey key = libtrace::CacheKeyBuilder("e")
                                       .AddContent("model", model, bytes)
                                       .Add("tensorrt", std::to_string(getInferLibVersion()))
                                       .Add("gpu", gpu.name)
                                       .Build();
    const libtrace::CacheResult made = cache_.GetOrCompile(key, {}, [&] {
      return libtrace::CompileOutput{.entry = {.artifact = Build(bytes)}, .bypass = {}};
    });
    const libtrace::TimedSpan span("tensorrt_deserialize");
    const std::string& plan = made.entry.artifact;
    runtime_.reset(nvinfer1::createInferRuntime(logger_));
    engine_.reset(runtime_->deserializeCudaEngine(plan.data(), plan.size()));
    if (engine_ == nullptr) std::exit(1);
    context_.reset(engine_->createExecutionContext());
    if (libtrace::IsEnabled()) context_->setProfiler(&profiler_);
  }
  ~TracedEngine() {
    const libtrace::CompileScope scope(compile_id_);
    profiler_.Emit();
    for (void* const memory : memory_) cudaFree(memory);
  }
  // Allocates memory for each input and output.
  void BindAll() {
    for (int32_t i = 0; i < engine_->getNbIOTensors(); ++i) {
      const char* const name = engine_->getIOTensorName(i);
      const nvinfer1::Dims shape = context_->getTensorShape(name);
      size_t size_bytes = 8;  // an element of the largest type
      for (int32_t d = 0; d < shape.nbDims; ++d) size_bytes *= static_cast<size_t>(shape.d[d]);
      void* memory = nullptr;
      if (cudaMalloc(&memory, size_bytes) != cudaSuccess) std::exit(1);
      memory_.push_back(memory);
      context_->setTensorAddress(name, memory);
    }
  }

  bool Run(cudaStream_t stream) {
    const auto start = std::chrono::steady_clock::now();
    const bool ran = context_->enqueueV3(stream) && cudaStreamSynchronize(stream) == cudaSuccess;
    calls_.Executed(compile_id_, "forward",
                    std::chrono::duration_cast<std::chrono::nanoseconds>(
                        std::chrono::steady_clock::now() - start)
                        .count());
    return ran;
  }

 private:
  std::string Build(const std::string& bytes) {
    const libtrace::TimedSpan span("tensorrt_build");
    const std::unique_ptr<nvinfer1::IBuilder> builder(nvinfer1::createInferBuilder(logger_));
    const std::unique_ptr<nvinfer1::INetworkDefinition> network(builder->createNetworkV2(0));
    const std::unique_ptr<nvonnxparser::IParser> parser(
        nvonnxparser::createParser(*network, logger_));
    if (!parser->parse(bytes.data(), bytes.size())) std::exit(1);
    const std::unique_ptr<nvinfer1::IBuilderConfig> config(builder->createBuilderConfig());
    const std::unique_ptr<nvinfer1::IHostMemory> plan(
        builder->buildSerializedNetwork(*network, *config));
    if (plan == nullptr) std::exit(1);
    return {static_cast<const char*>(plan->data()), plan->size()};
  }

  Logger logger_;
  Profiler profiler_;
  libtrace::CompileCache cache_;
  libtrace::Frame frame_;
  libtrace::CompileId compile_id_;
  libtrace::GraphExecutionOrder calls_{
      libtrace::GraphExecutionOrder::Options{.per_execution = true}};
  std::unique_ptr<nvinfer1::IRuntime> runtime_;
  std::unique_ptr<nvinfer1::ICudaEngine> engine_;
  std::unique_ptr<nvinfer1::IExecutionContext> context_;
  std::vector<void*> memory_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  TracedEngine engine(argv[1], argv[2]);
  cudaStream_t stream = nullptr;
  if (cudaStreamCreate(&stream) != cudaSuccess) return 1;
  engine.BindAll();
  for (int call = 0; call < (argc > 3 ? std::atoi(argv[3]) : 3); ++call) {
    if (!engine.Run(stream)) return 1;
  }
}
