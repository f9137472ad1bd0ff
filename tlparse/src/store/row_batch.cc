#include "store/row_batch.h"

namespace tlparse {

std::uint16_t NextRowTypeNumber() {
  static std::uint16_t next = 0;
  return next++;
}

TableId TableSet::Use(std::string_view table, std::size_t columns) {
  for (std::size_t index = 0; index < tables_.size(); ++index) {
    if (tables_[index].name == table) return static_cast<TableId>(index);
  }
  tables_.push_back({std::string(table), columns});
  return static_cast<TableId>(tables_.size() - 1);
}

}  // namespace tlparse
