// A backend of Triton Inference Server that traces: what loading a model compiled or found in a cache,
// and each request under its traceparent. OUTPUT = 2 * INPUT, FP32. Built where Triton's headers are.
// Triton loads FOLDER/libtrace_example/libtriton_libtrace_example.so with --backend-directory=FOLDER and
// passes the header on with '--http-header-forward-pattern=(?i)traceparent'; TORCH_TRACE is the server's.
#include <libtrace/artifacts/graph_execution.h>
#include <libtrace/cache/compile_cache.h>
#include <libtrace/compile.h>
#include <libtrace/traceparent.h>
#include <strings.h>
#include <triton/core/tritonbackend.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#define RETURN_ERROR_OF(call) \
  if (TRITONSERVER_Error* const error = (call)) return error

namespace {

uint64_t NowNs() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}
TRITONSERVER_Error* Invalid(const char* text) {
  return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, text);
}

class Model {
 public:
  Model(const std::string& name, const std::string& folder)
      : name_(name), cache_({.layer = "acme_triton", .directory = folder + "/cache"}) {
    libtrace::Compile compile(frame_, {.function = name, .file = folder, .line = 1});
    compile_id_ = compile.id();
    const libtrace::CacheKey key =
        libtrace::CacheKeyBuilder("t").Add("model", name).Add("version", "1").Build();
    const libtrace::CacheResult made = cache_.GetOrCompile(key, {}, [] {
      return libtrace::CompileOutput{.entry = {.artifact = "2"}, .bypass = {}};  // the "kernel"
    });
    factor_ = std::stof(made.entry.artifact);
  }

  TRITONSERVER_Error* Answer(TRITONBACKEND_Request* request, TRITONBACKEND_Response* response) {
    TRITONBACKEND_Input* input = nullptr;
    RETURN_ERROR_OF(TRITONBACKEND_RequestInputByIndex(request, 0, &input));
    TRITONSERVER_DataType type = TRITONSERVER_TYPE_INVALID;
    const int64_t* shape = nullptr;
    uint32_t rank = 0, count = 0;  // of dimensions, of buffers
    uint64_t size_bytes = 0;
    RETURN_ERROR_OF(
        TRITONBACKEND_InputProperties(input, nullptr, &type, &shape, &rank, &size_bytes, &count));
    if (type != TRITONSERVER_TYPE_FP32) return Invalid("INPUT is not FP32");
    TRITONBACKEND_Output* output = nullptr;
    RETURN_ERROR_OF(TRITONBACKEND_ResponseOutput(response, &output, "OUTPUT", type, shape, rank));
    TRITONSERVER_MemoryType place = TRITONSERVER_MEMORY_CPU;
    int64_t place_id = 0;
    void* target = nullptr;
    RETURN_ERROR_OF(TRITONBACKEND_OutputBuffer(output, &target, size_bytes, &place, &place_id));
    if (place == TRITONSERVER_MEMORY_GPU) return Invalid("OUTPUT is on a GPU");
    const uint64_t start_ns = NowNs();
    std::vector<float> values(size_bytes / sizeof(float));
    char* next = reinterpret_cast<char*>(values.data());
    for (uint32_t i = 0; i < count; ++i) {
      const void* part = nullptr;
      uint64_t part_bytes = 0;
      RETURN_ERROR_OF(TRITONBACKEND_InputBuffer(input, i, &part, &part_bytes, &place, &place_id));
      if (place == TRITONSERVER_MEMORY_GPU) return Invalid("INPUT is on a GPU");
      std::memcpy(next, part, part_bytes);
      next += part_bytes;
    }
    for (float& value : values) value *= factor_;
    std::memcpy(target, values.data(), size_bytes);
    calls_.Executed(compile_id_, name_, static_cast<int64_t>(NowNs() - start_ns));
    return nullptr;
  }

 private:
  std::string name_;
  libtrace::CompileCache cache_;
  libtrace::Frame frame_;
  libtrace::CompileId compile_id_;
  libtrace::GraphExecutionOrder calls_{
      libtrace::GraphExecutionOrder::Options{.per_execution = true, .max_size = 10'000}};
  float factor_ = 0;
};

// "" if the request came without one.
std::string TraceparentOf(TRITONBACKEND_Request* request) {
  uint32_t count = 0;
  if (TRITONSERVER_Error* const error = TRITONBACKEND_RequestParameterCount(request, &count))
    TRITONSERVER_ErrorDelete(error);
  for (uint32_t i = 0; i < count; ++i) {
    const char* key = nullptr;
    TRITONSERVER_ParameterType type = TRITONSERVER_PARAMETER_INT;
    const void* value = nullptr;
    if (TRITONSERVER_Error* const error =
            TRITONBACKEND_RequestParameter(request, i, &key, &type, &value)) {
      TRITONSERVER_ErrorDelete(error);
    } else if (type == TRITONSERVER_PARAMETER_STRING && strcasecmp(key, "traceparent") == 0) {
      return static_cast<const char*>(value);
    }
  }
  return {};
}

}  // namespace

extern "C" {

TRITONSERVER_Error* TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* model) {
  const char *name = nullptr, *folder = nullptr;
  TRITONBACKEND_ArtifactType type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
  RETURN_ERROR_OF(TRITONBACKEND_ModelName(model, &name));
  RETURN_ERROR_OF(TRITONBACKEND_ModelRepository(model, &type, &folder));
  return TRITONBACKEND_ModelSetState(model, new Model(name, folder));
}

TRITONSERVER_Error* TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model* model) {
  void* state = nullptr;
  RETURN_ERROR_OF(TRITONBACKEND_ModelState(model, &state));
  delete static_cast<Model*>(state);
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* instance,
                                                       TRITONBACKEND_Request** requests,
                                                       const uint32_t count) {
  TRITONBACKEND_Model* model = nullptr;
  void* state = nullptr;
  RETURN_ERROR_OF(TRITONBACKEND_ModelInstanceModel(instance, &model));
  RETURN_ERROR_OF(TRITONBACKEND_ModelState(model, &state));
  for (uint32_t i = 0; i < count; ++i) {
    const libtrace::TraceparentScope scope(TraceparentOf(requests[i]));
    const uint64_t start_ns = NowNs();
    TRITONBACKEND_Response* response = nullptr;
    TRITONSERVER_Error* error = TRITONBACKEND_ResponseNew(&response, requests[i]);
    if (error == nullptr) error = static_cast<Model*>(state)->Answer(requests[i], response);
    const uint64_t end_ns = NowNs();
    if (response != nullptr)
      TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, error);
    TRITONBACKEND_ModelInstanceReportStatistics(instance, requests[i], error == nullptr, start_ns,
                                                start_ns, end_ns, end_ns);
    if (error != nullptr) TRITONSERVER_ErrorDelete(error);
    TRITONBACKEND_RequestRelease(requests[i], TRITONSERVER_REQUEST_RELEASE_ALL);
  }
  return nullptr;
}

}  // extern "C"
