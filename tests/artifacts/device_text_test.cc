#include "artifacts/common/text/device_text.h"

#include <string>

#include "tests/catch2.h"

namespace {

using tlparse::TakeDeviceIndex;

// What is stored, "#" for the placeholder, and the index; "-" if nothing is taken. Putting it back
// must give the text again.
std::string Taken(const std::string& value, const std::string& name = "gm") {
  const auto taken = TakeDeviceIndex(name, value);
  if (!taken) return "-";
  CHECK(tlparse::PutDeviceIndex(taken->text, taken->device_index) == value);
  std::string text = taken->text;
  for (std::size_t at = 0; (at = text.find(tlparse::kDevicePlaceholder, at)) != std::string::npos;)
    text.replace(at, 3, "#");
  return text + " " + std::to_string(taken->device_index);
}

}  // namespace

TEST_CASE("TakeDeviceIndex takes the index out of texts that name one device", "[device_text]") {
  CHECK(Taken("cuda:3") == "cuda:# 3");
  CHECK(Taken("f32[8]cuda:12, device(type='cuda', index=12)") ==
        "f32[8]cuda:#, device(type='cuda', index=#) 12");
  CHECK(Taken("xpu:0 xpu:0") == "xpu:# xpu:# 0");
  CHECK(Taken("7", "default_cuda_device_index") == "# 7");
}

TEST_CASE("TakeDeviceIndex leaves alone what it could not put back, or what is no device",
          "[device_text]") {
  for (const char* value : {"", "cpu", "cuda", "cuda:", "cuda:x", "mycuda:3", "cuda:0 cuda:1",
                            "cuda:007", "cuda:123456", "index=3", "cuda:3 \xEF\xBF\xBC"}) {
    INFO(value);
    CHECK(Taken(value) == "-");
  }
  for (const char* value : {"", "x", "-1", "07", "None"})
    CHECK(Taken(value, "default_cuda_device_index") == "-");
}
