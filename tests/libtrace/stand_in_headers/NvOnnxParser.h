// A stand-in for the header of TensorRT's parser; see NvInfer.h.
#pragma once

#include "NvInfer.h"

namespace nvonnxparser {

class IParser {
 public:
  explicit IParser(nvinfer1::INetworkDefinition& network) : network_(network) {}
  virtual ~IParser() noexcept = default;
  bool parse(const void* model, std::size_t size) noexcept {
    network_.model.assign(static_cast<const char*>(model), size);
    return size != 0;
  }

 private:
  nvinfer1::INetworkDefinition& network_;
};
inline IParser* createParser(nvinfer1::INetworkDefinition& network, nvinfer1::ILogger&) noexcept {
  return new IParser(network);
}

}  // namespace nvonnxparser
