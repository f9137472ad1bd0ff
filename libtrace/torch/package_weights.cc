#include "torch/package_weights.h"

#include <cstdint>
#include <map>
#include <string_view>

#include "core/json_reader.h"

namespace libtrace {
namespace {

constexpr std::string_view kWeights = "data/weights/";
constexpr uint64_t kMaxPickleSize = uint64_t{16} << 20;

struct StorageType {
  std::string_view class_name, dtype;
  uint64_t size_bytes;
};
// torch.save names the class of the storage.
constexpr StorageType kStorageTypes[] = {{"FloatStorage", "float32", 4},
                                         {"DoubleStorage", "float64", 8},
                                         {"HalfStorage", "float16", 2},
                                         {"BFloat16Storage", "bfloat16", 2},
                                         {"LongStorage", "int64", 8},
                                         {"IntStorage", "int32", 4},
                                         {"ShortStorage", "int16", 2},
                                         {"CharStorage", "int8", 1},
                                         {"ByteStorage", "uint8", 1},
                                         {"BoolStorage", "bool", 1},
                                         {"ComplexFloatStorage", "complex64", 8},
                                         {"ComplexDoubleStorage", "complex128", 16}};

// One file of `data/weights/`: an archive of torch.save with one tensor.
struct WeightFile {
  uint64_t ordinal = 0;     // from 1
  uint64_t size_bytes = 0;  // of the storage; 0: not known
  std::string dtype{}, device{};
  uint64_t item_size_bytes = 0;  // 0: not known
};

void ReadPickle(std::string_view pickle, WeightFile& file) {
  for (const StorageType& type : kStorageTypes) {
    const std::string global = "ctorch\n" + std::string(type.class_name) + "\n";
    if (pickle.find(global) == std::string_view::npos) continue;
    file.dtype = type.dtype;
    file.item_size_bytes = type.size_bytes;
  }
  // A text is X, its length in four bytes, its characters.
  for (const std::string_view device : {"cpu", "cuda:", "xpu:", "mps"}) {
    for (size_t at = pickle.find(device); at != std::string_view::npos;
         at = pickle.find(device, at + 1)) {
      if (at < 5 || pickle[at - 5] != 'X') continue;
      file.device = pickle.substr(at, static_cast<unsigned char>(pickle[at - 4]));
      return;
    }
  }
}

WeightFile ReadWeightFile(ZipFile& zip, const ZipFile::Member& member) {
  WeightFile file;
  ZipFile saved;
  if (!saved.OpenWithin(zip, member)) return file;
  for (const ZipFile::Member& inner : saved.members()) {
    const std::string_view name = inner.name;
    if (name.ends_with("/data.pkl")) {
      if (const auto pickle = saved.Read(inner, kMaxPickleSize)) ReadPickle(*pickle, file);
    } else if (name.find("/data/") != std::string_view::npos) {
      file.size_bytes += inner.size_bytes;
    }
  }
  return file;
}

struct Entry {
  std::string name, file;
  std::vector<int64_t> shape;
};

// Empty: of another shape.
std::vector<Entry> ReadConfig(std::string_view text) {
  JsonReader json(text);
  std::vector<Entry> entries;
  const bool is_whole = json.Object([&](std::string_view name) {
    Entry& entry = entries.emplace_back();
    entry.name = JsonReader::Decoded(name);
    int index = 0;
    return json.Array([&] {
      switch (index++) {
        case 0:
          return json.String(entry.file);
        case 1:
          return json.Array([&] { return json.Int(entry.shape.emplace_back()); });
        default:
          return json.Skip();
      }
    });
  });
  return is_whole ? entries : std::vector<Entry>();
}

uint64_t CountOf(const std::vector<int64_t>& shape) {
  uint64_t count = 1;
  for (const int64_t size : shape) count *= size > 0 ? static_cast<uint64_t>(size) : 0;
  return count;
}

}  // namespace

std::vector<ModelWeight> ReadPackageWeights(ZipFile& zip,
                                            const std::vector<WeightsConfig>& configs) {
  std::map<std::string, WeightFile> files;
  std::vector<ModelWeight> weights;
  for (const WeightsConfig& config : configs) {
    for (Entry& entry : ReadConfig(config.text)) {
      const auto [found, is_new] = files.try_emplace(entry.file);
      WeightFile& file = found->second;
      if (is_new) {
        for (const ZipFile::Member& member : zip.members()) {
          if (std::string_view(member.name).ends_with(std::string(kWeights) + entry.file))
            file = ReadWeightFile(zip, member);
        }
        file.ordinal = files.size();
      }
      ModelWeight& weight = weights.emplace_back();
      weight.name = configs.size() > 1 ? config.model + "/" + entry.name : entry.name;
      weight.size_bytes = CountOf(entry.shape) * file.item_size_bytes;
      weight.shape = std::move(entry.shape);
      weight.dtype = file.dtype;
      weight.device = file.device;
      weight.storage_id = file.ordinal;
      weight.storage_size_bytes = file.size_bytes;
    }
  }
  return weights;
}

}  // namespace libtrace
