// Loads the backend of libtrace/examples/triton_backend.cc as Triton Inference Server would, and sends it
// three requests: two with a traceparent, one whose input has another type. Prints what it answers.
//
// usage: libtrace_triton_stand_in BACKEND.so MODEL_FOLDER
#include <dlfcn.h>
#include <triton/core/tritonbackend.h>

#include <cstdio>
#include <string>
#include <vector>

struct TRITONSERVER_Error {
  std::string text;
};
struct TRITONBACKEND_Input {
  TRITONSERVER_DataType type;
  std::vector<float> first, second;  // two buffers
  int64_t shape;
};
struct TRITONBACKEND_Output {
  std::vector<float> values;
};
struct TRITONBACKEND_Request {
  TRITONBACKEND_Input input;
  std::string traceparent;
  bool is_released = false, is_counted = false;
};
struct TRITONBACKEND_Response {
  TRITONBACKEND_Output output;
};
struct TRITONBACKEND_Model {
  std::string folder;
  void* state = nullptr;
};
struct TRITONBACKEND_ModelInstance {
  TRITONBACKEND_Model* model;
};

extern "C" {

TRITONSERVER_Error* TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code, const char* text) {
  return new TRITONSERVER_Error{text};
}
void TRITONSERVER_ErrorDelete(TRITONSERVER_Error* error) { delete error; }
TRITONSERVER_Error* TRITONBACKEND_ModelName(TRITONBACKEND_Model*, const char** name) {
  *name = "doubling";
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelRepository(TRITONBACKEND_Model* model,
                                                  TRITONBACKEND_ArtifactType*,
                                                  const char** location) {
  *location = model->folder.c_str();
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelState(TRITONBACKEND_Model* model, void** state) {
  *state = model->state;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelSetState(TRITONBACKEND_Model* model, void* state) {
  model->state = state;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance* instance,
                                                     TRITONBACKEND_Model** model) {
  *model = instance->model;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportStatistics(TRITONBACKEND_ModelInstance*,
                                                                TRITONBACKEND_Request* request,
                                                                bool, uint64_t exec_start_ns,
                                                                uint64_t, uint64_t,
                                                                uint64_t exec_end_ns) {
  request->is_counted = exec_start_ns <= exec_end_ns;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestInputByIndex(TRITONBACKEND_Request* request, uint32_t,
                                                      TRITONBACKEND_Input** input) {
  *input = &request->input;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestParameterCount(TRITONBACKEND_Request* request,
                                                        uint32_t* count) {
  *count = request->traceparent.empty() ? 1 : 2;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestParameter(TRITONBACKEND_Request* request, uint32_t index,
                                                   const char** key,
                                                   TRITONSERVER_ParameterType* type,
                                                   const void** value) {
  static const int64_t number = 1;
  *key = index == 0 ? "priority" : "Traceparent";
  *type = index == 0 ? TRITONSERVER_PARAMETER_INT : TRITONSERVER_PARAMETER_STRING;
  *value = index == 0 ? static_cast<const void*>(&number) : request->traceparent.c_str();
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestRelease(TRITONBACKEND_Request* request, uint32_t) {
  request->is_released = true;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_InputProperties(TRITONBACKEND_Input* input, const char**,
                                                  TRITONSERVER_DataType* type,
                                                  const int64_t** shape, uint32_t* dims_count,
                                                  uint64_t* byte_size, uint32_t* buffer_count) {
  *type = input->type;
  *shape = &input->shape;
  *dims_count = 1;
  *byte_size = sizeof(float) * (input->first.size() + input->second.size());
  *buffer_count = 2;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_InputBuffer(TRITONBACKEND_Input* input, uint32_t index,
                                              const void** buffer, uint64_t* byte_size,
                                              TRITONSERVER_MemoryType* place, int64_t*) {
  const std::vector<float>& part = index == 0 ? input->first : input->second;
  *buffer = part.data();
  *byte_size = sizeof(float) * part.size();
  *place = TRITONSERVER_MEMORY_CPU;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseNew(TRITONBACKEND_Response** response,
                                              TRITONBACKEND_Request*) {
  *response = new TRITONBACKEND_Response;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response* response,
                                                 TRITONBACKEND_Output** output, const char*,
                                                 TRITONSERVER_DataType, const int64_t*, uint32_t) {
  *output = &response->output;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output* output, void** buffer,
                                               uint64_t byte_size, TRITONSERVER_MemoryType*,
                                               int64_t*) {
  output->values.resize(byte_size / sizeof(float));
  *buffer = output->values.data();
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseSend(TRITONBACKEND_Response* response, uint32_t,
                                               TRITONSERVER_Error* error) {
  std::printf("answer:");
  if (error != nullptr) std::printf(" error %s", error->text.c_str());
  for (const float value : response->output.values) std::printf(" %g", static_cast<double>(value));
  std::printf("\n");
  delete response;
  return nullptr;
}
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  void* const backend = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (backend == nullptr) return std::fprintf(stderr, "%s\n", dlerror()), 1;
  using OfModel = TRITONSERVER_Error* (*)(TRITONBACKEND_Model*);
  using Execute =
      TRITONSERVER_Error* (*)(TRITONBACKEND_ModelInstance*, TRITONBACKEND_Request**, uint32_t);
  const auto find = [&](const char* name) { return dlsym(backend, name); };
  TRITONBACKEND_Model model{argv[2]};
  if (reinterpret_cast<OfModel>(find("TRITONBACKEND_ModelInitialize"))(&model) != nullptr) return 1;
  const TRITONBACKEND_Input good{TRITONSERVER_TYPE_FP32, {1, 2}, {3}, 3};
  TRITONBACKEND_Input bad = good;
  bad.type = TRITONSERVER_TYPE_INVALID;
  const std::string id = "00-0af7651916cd43dd8448eb211c80319";
  TRITONBACKEND_Request requests[] = {
      {good, id + "a-b7ad6b7169203331-01"}, {good, id + "b-b7ad6b7169203332-01"}, {bad, ""}};
  TRITONBACKEND_Request* pointers[] = {&requests[0], &requests[1], &requests[2]};
  TRITONBACKEND_ModelInstance instance{&model};
  const auto execute = reinterpret_cast<Execute>(find("TRITONBACKEND_ModelInstanceExecute"));
  if (execute(&instance, pointers, 3) != nullptr) return 1;
  for (const TRITONBACKEND_Request& request : requests)
    if (!request.is_released || !request.is_counted) return 1;
  return reinterpret_cast<OfModel>(find("TRITONBACKEND_ModelFinalize"))(&model) == nullptr ? 0 : 1;
}
