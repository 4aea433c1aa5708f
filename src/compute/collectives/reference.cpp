#include "collectives/reference.hpp"

#include <cstring>
#include <type_traits>

#include "base/check.hpp"
#include "collectives/reduce/float_formats.hpp"

namespace trainyard::collectives::reference {
namespace {

// Defines how a type is reduced: as `Wide` during a reduction, stored as `Narrow`.
template <class Number>
struct Plain {
  using Narrow = Number;
  using Wide = Number;
  static Wide widen(Narrow value) { return Wide(value); }
  static Narrow narrow(Wide value) { return Narrow(value); }
};

template <class Narrow_, float (*widen_)(Narrow_), Narrow_ (*narrow_)(float)>
struct Converted {
  using Narrow = Narrow_;
  using Wide = float;
  static Wide widen(Narrow value) { return widen_(value); }
  static Narrow narrow(Wide value) { return narrow_(value); }
};

// Computes integers as unsigned, so that wrapping is defined.
template <class Wide>
Wide combined(Reduction reduction, Wide a, Wide b) {
  if (reduction == Reduction::minimum) return b < a ? b : a;
  if (reduction == Reduction::maximum) return a < b ? b : a;
  if constexpr (std::is_integral_v<Wide>) {
    const auto left = uint64_t(a);
    const auto right = uint64_t(b);
    if (reduction == Reduction::bits_and) return Wide(left & right);
    if (reduction == Reduction::bits_or) return Wide(left | right);
    if (reduction == Reduction::bits_xor) return Wide(left ^ right);
    return Wide(reduction == Reduction::product ? left * right : left + right);
  } else {
    return reduction == Reduction::product ? a * b : a + b;
  }
}

template <class Wide>
Wide divided(Wide sum, int divisor) {
  if constexpr (std::is_integral_v<Wide>) {
    return Wide(int64_t(sum) / divisor);
  } else {
    return sum / Wide(divisor);
  }
}

template <class As>
struct Evaluation {
  Reduction reduction;
  const std::vector<Bytes>& inputs;
  size_t element;

  typename As::Narrow value(const plan::Expression& expression, int divisor) const {
    if (expression.parts.empty()) {
      typename As::Narrow leaf;
      std::memcpy(&leaf, inputs[size_t(expression.rank)].data() + element * sizeof leaf,
                  sizeof leaf);
      return leaf;
    }
    typename As::Wide sum = As::widen(value(expression.parts[0], 0));
    for (size_t k = 1; k < expression.parts.size(); ++k) {
      sum = combined(reduction, sum, As::widen(value(expression.parts[k], 0)));
    }
    return As::narrow(divisor > 0 ? divided(sum, divisor) : sum);
  }
};

template <class As>
void evaluate(Reduction reduction, const std::vector<Bytes>& inputs,
              const std::function<plan::Expression(size_t)>& expression, Bytes& output) {
  const int divisor = reduction == Reduction::average ? int(inputs.size()) : 0;
  for (size_t element = 0; (element + 1) * sizeof(typename As::Narrow) <= output.size();
       ++element) {
    const Evaluation<As> evaluation{reduction, inputs, element};
    const typename As::Narrow value = evaluation.value(expression(element), divisor);
    std::memcpy(output.data() + element * sizeof value, &value, sizeof value);
  }
}

}  // namespace

Bytes reduced(Type type, Reduction reduction, const std::vector<Bytes>& inputs,
              const std::function<plan::Expression(size_t)>& expression) {
  CHECK(!inputs.empty(), "a group has a rank");
  Bytes output(inputs[0].size());
  using namespace formats;
  switch (type) {
    case Type::f64:
      evaluate<Plain<double>>(reduction, inputs, expression, output);
      break;
    case Type::f32:
      evaluate<Plain<float>>(reduction, inputs, expression, output);
      break;
    case Type::f16:
      evaluate<Converted<uint16_t, from_f16, to_f16>>(reduction, inputs, expression, output);
      break;
    case Type::bf16:
      evaluate<Converted<uint16_t, from_bf16, to_bf16>>(reduction, inputs, expression, output);
      break;
    case Type::f8e4m3:
      evaluate<Converted<uint8_t, from_f8e4m3, to_f8e4m3>>(reduction, inputs, expression, output);
      break;
    case Type::f8e5m2:
      evaluate<Converted<uint8_t, from_f8e5m2, to_f8e5m2>>(reduction, inputs, expression, output);
      break;
    case Type::i64:
      evaluate<Plain<int64_t>>(reduction, inputs, expression, output);
      break;
    case Type::i32:
      evaluate<Plain<int32_t>>(reduction, inputs, expression, output);
      break;
    case Type::i16:
      evaluate<Plain<int16_t>>(reduction, inputs, expression, output);
      break;
    case Type::i8:
      evaluate<Plain<int8_t>>(reduction, inputs, expression, output);
      break;
    case Type::u8:
      evaluate<Plain<uint8_t>>(reduction, inputs, expression, output);
      break;
    case Type::boolean: {
      const bool any = reduction == Reduction::sum || reduction == Reduction::maximum ||
                       reduction == Reduction::bits_or;
      for (size_t element = 0; element < output.size(); ++element) {
        const bool odd = reduction == Reduction::bits_xor;
        bool value = !any && !odd;
        for (const Bytes& input : inputs) {
          const bool theirs = input[element] != std::byte{};
          value = odd ? value != theirs : any ? value || theirs : value && theirs;
        }
        output[element] = std::byte(value ? 1 : 0);
      }
    }
  }
  return output;
}

Bytes joined(const std::vector<Bytes>& parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace trainyard::collectives::reference
