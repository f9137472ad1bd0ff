// A stand-in for TensorRT's header: what libtrace/examples/tensorrt.cc uses, with an "engine" that is the
// text of its model and has two layers, so that the example is compiled and run where TensorRT and a GPU
// are not. Names and signatures are those of TensorRT 10's documentation; nothing here is TensorRT.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cuda_runtime_api.h"

namespace nvinfer1 {

struct Dims {
  int32_t nbDims = 0;
  int64_t d[8] = {};
};

class ILogger {
 public:
  enum class Severity : int32_t { kINTERNAL_ERROR, kERROR, kWARNING, kINFO, kVERBOSE };
  virtual void log(Severity severity, const char* text) noexcept = 0;
  virtual ~ILogger() = default;
};
class IProfiler {
 public:
  virtual void reportLayerTime(const char* layer, float ms) noexcept = 0;
  virtual ~IProfiler() noexcept = default;
};

class IHostMemory {
 public:
  explicit IHostMemory(std::string text) : text_(std::move(text)) {}
  virtual ~IHostMemory() = default;
  void* data() const noexcept { return const_cast<char*>(text_.data()); }
  std::size_t size() const noexcept { return text_.size(); }

 private:
  std::string text_;
};
class INetworkDefinition {
 public:
  virtual ~INetworkDefinition() = default;
  std::string model{};  // of the stand-in
};
class IBuilderConfig {
 public:
  virtual ~IBuilderConfig() = default;
};
class IBuilder {
 public:
  virtual ~IBuilder() = default;
  INetworkDefinition* createNetworkV2(uint32_t) noexcept { return new INetworkDefinition; }
  IBuilderConfig* createBuilderConfig() noexcept { return new IBuilderConfig; }
  IHostMemory* buildSerializedNetwork(INetworkDefinition& network, IBuilderConfig&) noexcept {
    return new IHostMemory("engine of " + network.model);
  }
};

class IExecutionContext {
 public:
  virtual ~IExecutionContext() = default;
  void setProfiler(IProfiler* profiler) noexcept { profiler_ = profiler; }
  Dims getTensorShape(const char*) const noexcept { return {2, {2, 3}}; }
  bool setTensorAddress(const char*, void* memory) noexcept { return memory != nullptr; }
  bool enqueueV3(cudaStream_t) noexcept {
    if (profiler_ != nullptr) {
      profiler_->reportLayerTime("conv1 + relu1", 0.5F);
      profiler_->reportLayerTime("fc", 0.25F);
    }
    return true;
  }

 private:
  IProfiler* profiler_ = nullptr;
};
class ICudaEngine {
 public:
  virtual ~ICudaEngine() = default;
  int32_t getNbIOTensors() const noexcept { return 2; }
  const char* getIOTensorName(int32_t index) const noexcept { return index == 0 ? "in" : "out"; }
  IExecutionContext* createExecutionContext() noexcept { return new IExecutionContext; }
};
class IRuntime {
 public:
  virtual ~IRuntime() = default;
  ICudaEngine* deserializeCudaEngine(const void* plan, std::size_t size) noexcept {
    const std::string text(static_cast<const char*>(plan), size);
    return text.compare(0, 10, "engine of ") == 0 ? new ICudaEngine : nullptr;
  }
};
inline IBuilder* createInferBuilder(ILogger&) noexcept { return new IBuilder; }
inline IRuntime* createInferRuntime(ILogger&) noexcept { return new IRuntime; }

}  // namespace nvinfer1

extern "C" inline int32_t getInferLibVersion() noexcept { return 0; }
