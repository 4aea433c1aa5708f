#include "operations/table.hpp"

#include "base/check.hpp"

namespace trainyard::api {
namespace {

// An input of the operation, whose type only its shape has.
class OwnedInput {
 public:
  explicit OwnedInput(const shapes::OperationShape& shape)
      : input_(shape.input_lifetime.make(), shape.input_lifetime.destroy) {}
  void* get() { return input_.get(); }

 private:
  std::unique_ptr<void, void (*)(void*)> input_;
};

}  // namespace

const Entry* OperationTable::find(const shapes::OperationShape& shape) const {
  const auto found = entries_.find(&shape);
  return found == entries_.end() ? nullptr : &found->second;
}

Entry& OperationTable::entry_of(const shapes::OperationShape& shape, Runs runs) {
  const auto [at, made] = entries_.try_emplace(&shape);
  CHECK(made, "each operation is added once");
  at->second.shape = &shape;
  at->second.runs = runs;
  at->second.inspect = [&shape](const Decode& decode) {
    OwnedInput input(shape);
    return decode(input.get());
  };
  return at->second;
}

void OperationTable::put_call(const shapes::OperationShape& shape, Runs runs, Call call) {
  entry_of(shape, runs).call = [&shape, call = std::move(call)](
                                   const Context& context, const Decode& decode, Finish finish) {
    OwnedInput input(shape);
    if (const auto failure = decode(input.get())) return finish(nullptr, &*failure);
    call(context, input.get(), std::move(finish));
  };
}

void OperationTable::put_stream(const shapes::OperationShape& shape, Runs runs, StreamCall call) {
  entry_of(shape, runs).stream = [&shape, call = std::move(call)](
                                     const Context& context, const Decode& decode,
                                     ExchangeEnds& ends, const Finish& finish) {
    OwnedInput input(shape);
    if (const auto failure = decode(input.get())) return finish(nullptr, &*failure);
    call(context, input.get(), ends, finish);
  };
}

}  // namespace trainyard::api
