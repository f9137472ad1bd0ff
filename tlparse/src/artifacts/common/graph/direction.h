// What a graph computes: graph.direction.
#pragma once

#include <cstdint>
#include <string_view>

namespace tlparse {

enum class Direction : std::uint8_t { kForward, kBackward, kInference, kJoint, kUnknown };
// As in the database; "" for kUnknown, which is NULL there.
constexpr std::string_view Name(Direction direction) {
  switch (direction) {
    case Direction::kForward:
      return "forward";
    case Direction::kBackward:
      return "backward";
    case Direction::kInference:
      return "inference";
    case Direction::kJoint:
      return "joint";
    case Direction::kUnknown:
      break;
  }
  return "";
}
// The inverse; kUnknown for any other text.
constexpr Direction DirectionFrom(std::string_view name) {
  for (const Direction direction :
       {Direction::kForward, Direction::kBackward, Direction::kInference, Direction::kJoint})
    if (Name(direction) == name) return direction;
  return Direction::kUnknown;
}

}  // namespace tlparse
