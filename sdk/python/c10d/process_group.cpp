// Implements a backend of torch.distributed with a Group: tensors become buffer views, and calls
// become tasks of one worker. The end of a task completes a future, for which DDP waits while the
// backward pass continues.
//
// torch 1.13 calls a backend ProcessGroup, torch 2 calls it Backend; the functions are the same.
//
// Threads: as torch requires, calls of one group come from one thread at a time; operations
// complete on threads of the worker. Errors:  those of a Group, as RuntimeError, from wait() and
// from the future.
#include <pybind11/chrono.h>
#include <torch/extension.h>
#include <torch/version.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capi/process_environment.hpp"
#include "collectives/launch.hpp"
#include "sdk/python/c10d/channels.hpp"
#include "sdk/python/c10d/group_store.hpp"
#include "sdk/python/c10d/in_place.hpp"
#include "sdk/python/c10d/rendezvous.hpp"
#include "sdk/python/c10d/tensors.hpp"
#include "sdk/python/c10d/works.hpp"

namespace trainyard::sdk {
namespace {

using at::Tensor;
using collectives::BufferView;
using collectives::ConstBufferView;
using collectives::Group;
using collectives::ReduceOptions;
namespace calls = collectives::calls;
using c10d::OpType;
using c10d::ReduceOp;
using c10d::Work;
using Doing = std::function<Result<void>(const Named&)>;

#if TORCH_VERSION_MAJOR >= 2
using Base = c10d::Backend;
#else
using Base = c10d::ProcessGroup;
#endif

// Operations up to this size take less time than waking a thread. Larger operations start at once,
// in parallel with the caller.
constexpr size_t kSmallBytesMax = 64 << 10;

// -- the backend

class TrainyardGroup : public Base {
 public:
  struct Settings {
    std::chrono::milliseconds timeout;
    collectives::Launch connection;     // of read_connection
    std::vector<int64_t> global_ranks;  // for a group of some ranks; empty: all ranks
  };

  TrainyardGroup(c10::intrusive_ptr<c10d::Store> store, int rank, int size, Settings settings)
      : Base(rank, size),
        settings_(std::move(settings)),
        store_(std::move(store), settings_.timeout, ending_) {
    auto group = connect_at("group", rank, size, true);
    if (!group) throw std::runtime_error(text_of(group.error()));
    group_ = std::move(group).value();
  }

  ~TrainyardGroup() override {
    ending_->store(true);
    // Completing an operation may need Python's lock, which the caller of this destructor may hold.
    const auto free_for_others =
        PyGILState_Check() ? std::make_unique<pybind11::gil_scoped_release>() : nullptr;
    channels_.end();
    worker_->end();
  }

  const std::string getBackendName() const override { return "trainyard"; }
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return operations_; }

  c10::intrusive_ptr<Work> broadcast(Tensors& tensors,
                                     const c10d::BroadcastOptions& options) override {
    const Destination target(only(tensors));
    return start(
        OpType::BROADCAST, "trainyard:broadcast", tensors,
        [target, options](const Named& named) -> Result<void> {
          TRY(named.run(calls::broadcast(bytes(target.contiguous), int(options.rootRank))));
          target.copy_back();
          return ok();
        });
  }

  c10::intrusive_ptr<Work> allreduce(Tensors& tensors,
                                     const c10d::AllreduceOptions& options) override {
    if (tensors.size() == 1 && tensors[0].is_sparse()) return allreduce_of_sparse(tensors, options);
    const Destination target(only(tensors));
    const ReduceOp op = options.reduceOp;
    const auto reducing = reducing_or_bits(op, target.tensor);
    return start(OpType::ALLREDUCE, "trainyard:all_reduce", tensors,
                 [this, target, op, reducing](const Named& named) -> Result<void> {
                   if (settings_.connection.register_in_place)
                     in_place_.note(named.group, target.contiguous);
                   auto done = allreduce_now(named, target.contiguous, op, reducing);
                   if (!done) in_place_.end();
                   TRY(std::move(done));
                   target.copy_back();
                   return ok();
                 });
  }

  c10::intrusive_ptr<Work> allreduce_coalesced(
      Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override {
    // Reduces all tensors of one type in one operation.
    std::map<at::ScalarType, Tensors> by_type;
    for (const Tensor& tensor : tensors) by_type[tensor.scalar_type()].push_back(tensor);
    struct Joined {
      Tensors tensors;
      Tensor flat;
      ReduceOptions reducing;
    };
    std::vector<Joined> all;
    for (auto& [type, same] : by_type) {
      Tensor flat = joined(same);
      auto reducing = reducing_or_bits(options.reduceOp, flat);
      all.push_back({std::move(same), std::move(flat), std::move(reducing)});
    }
    const ReduceOp op = options.reduceOp;
    return start(OpType::ALLREDUCE_COALESCED, "trainyard:all_reduce_coalesced", tensors,
                 [all = std::move(all), op](const Named& named) -> Result<void> {
                   for (const Joined& each : all) {
                     TRY(allreduce_now(named, each.flat, op, each.reducing));
                     part(each.flat, each.tensors);
                   }
                   return ok();
                 });
  }

  c10::intrusive_ptr<Work> reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    const Destination target(only(tensors));
    const ReduceOp op = options.reduceOp;
    const auto reducing = reducing_or_bits(op, target.tensor);
    const int root = int(options.rootRank);
    const bool is_root = root == getRank();
    return start(OpType::REDUCE, "trainyard:reduce", tensors,
                 [target, op, reducing, root, is_root](const Named& named) -> Result<void> {
                   if (is_bitwise(op)) {
                     const Tensor all = target.contiguous.clone();
                     TRY(combine_bits(named, all, op.op_));
                     if (is_root) target.tensor.copy_(all);
                     return ok();
                   }
                   const BufferView values = buffer_view(target.contiguous);
                   TRY(named.run(calls::reduce(values, values, root, reducing)));
                   if (is_root) target.copy_back();
                   return ok();
                 });
  }

  c10::intrusive_ptr<Work> allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                     const c10d::AllgatherOptions&) override {
    const Tensors out = only_list(outputs);
    expect_one_a_rank(out);
    const Tensor in = only(inputs).contiguous();
    const Tensor flat = flat_buffer_for(out);
    expect_ours_among(in, out);
    return start(OpType::ALLGATHER, "trainyard:all_gather", out,
                 [in, flat, out](const Named& named) -> Result<void> {
                   TRY(named.run(calls::all_gather(bytes(in), bytes(flat), uneven(bytes_of(out)))));
                   part(flat, out);
                   return ok();
                 });
  }

  c10::intrusive_ptr<Work> _allgather_base(Tensor& output, Tensor& input,
                                           const c10d::AllgatherOptions&) override {
    const Destination target(output);
    expect_ours(input);
    expect_one_type(input, output);
    TORCH_CHECK(output.numel() == input.numel() * getSize(),
                "trainyard: the output must hold one input of each rank");
    const Tensor in = input.contiguous();
    return start(OpType::_ALLGATHER_BASE, "trainyard:_all_gather_base", {output},
                 [target, in](const Named& named) -> Result<void> {
                   TRY(named.run(calls::all_gather(bytes(in), bytes(target.contiguous))));
                   target.copy_back();
                   return ok();
                 });
  }

  c10::intrusive_ptr<Work> allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                               const c10d::AllgatherOptions&) override {
    expect_one_a_rank_(outputs.size());
    std::vector<std::pair<Tensor, Tensors>> all;
    Tensors result;
    for (size_t index = 0; index < inputs.size(); ++index) {
      expect_ours(inputs[index]);
      Tensors out;
      for (auto& of_rank : outputs) out.push_back(of_rank.at(index));
      result.insert(result.end(), out.begin(), out.end());
      expect_ours_among(inputs[index], out);
      all.emplace_back(inputs[index].contiguous(), std::move(out));
    }
    return start(
        OpType::ALLGATHER_COALESCED, "trainyard:all_gather_coalesced", result,
        [all](const Named& named) -> Result<void> {
          for (const auto& [in, out] : all) {
            const Tensor flat = flat_buffer_for(out);
            TRY(named.run(calls::all_gather(bytes(in), bytes(flat), uneven(bytes_of(out)))));
            part(flat, out);
          }
          return ok();
        });
  }

  c10::intrusive_ptr<Work> gather(std::vector<Tensors>& outputs, Tensors& inputs,
                                  const c10d::GatherOptions& options) override {
    const Tensor in = only(inputs).contiguous();
    const int root = int(options.rootRank);
    Tensors out;
    Tensor flat;
    if (root == getRank()) {
      out = only_list(outputs);
      expect_one_a_rank(out);
      for (const Tensor& each : out)
        TORCH_CHECK(each.numel() == in.numel(),
                    "trainyard: gather needs equally many elements from each rank");
      flat = flat_buffer_for(out);
      expect_one_type(in, flat);
    }
    return start(OpType::GATHER, "trainyard:gather", out,
                 [in, flat, out, root](const Named& named) -> Result<void> {
                   TRY(named.run(calls::gather(bytes(in),
                                               flat.defined() ? bytes(flat) : BufferView{}, root)));
                   if (flat.defined()) part(flat, out);
                   return ok();
                 });
  }

  c10::intrusive_ptr<Work> scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                   const c10d::ScatterOptions& options) override {
    const Destination target(only(outputs));
    const int root = int(options.rootRank);
    Tensor flat;
    if (root == getRank()) {
      expect_one_a_rank(only_list(inputs));
      for (const Tensor& each : inputs[0])
        TORCH_CHECK(each.numel() == target.tensor.numel(),
                    "trainyard: scatter sends equally many elements to each rank");
      flat = joined(inputs[0]);
      expect_one_type(flat, target.tensor);
    }
    return start(OpType::SCATTER, "trainyard:scatter", outputs,
                 [target, flat, root](const Named& named) -> Result<void> {
                   const ConstBufferView in =
                       flat.defined() ? ConstBufferView(bytes(flat)) : ConstBufferView();
                   TRY(named.run(calls::scatter(in, bytes(target.contiguous), root)));
                   target.copy_back();
                   return ok();
                 });
  }

  c10::intrusive_ptr<Work> reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                          const c10d::ReduceScatterOptions& options) override {
    const Destination target(only(outputs));
    const Tensors& in = only_list(inputs);
    expect_one_a_rank(in);
    std::vector<size_t> counts;
    for (const Tensor& each : in) counts.push_back(buffer_view(each).count);
    return reduce_scatter_of(OpType::REDUCE_SCATTER, target, joined(in), uneven(counts), options);
  }

  c10::intrusive_ptr<Work> _reduce_scatter_base(
      Tensor& output, Tensor& input, const c10d::ReduceScatterOptions& options) override {
    expect_ours(input);
    TORCH_CHECK(input.numel() == output.numel() * getSize(),
                "trainyard: the input must hold one output for each rank");
    return reduce_scatter_of(OpType::_REDUCE_SCATTER_BASE, Destination(output), input.contiguous(),
                             {}, options);
  }

#if TORCH_VERSION_MAJOR >= 2
  c10::intrusive_ptr<Work> allgather_into_tensor_coalesced(
      Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override {
    return last_of(outputs.size(), [&](size_t index) {
      return _allgather_base(outputs[index], inputs[index], options);
    });
  }

  c10::intrusive_ptr<Work> reduce_scatter_tensor_coalesced(
      Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) override {
    return last_of(outputs.size(), [&](size_t index) {
      return _reduce_scatter_base(outputs[index], inputs[index], options);
    });
  }
#endif

  c10::intrusive_ptr<Work> alltoall_base(Tensor& output, Tensor& input,
                                         std::vector<int64_t>& output_splits,
                                         std::vector<int64_t>& input_splits,
                                         const c10d::AllToAllOptions&) override {
    const Destination target(output);
    expect_ours(input);
    const Tensor in = input.contiguous();
    expect_one_type(input, output);
    auto sent = row_bytes(in, input_splits);
    auto received = row_bytes(target.contiguous, output_splits);
    return start(
        OpType::ALLTOALL_BASE, "trainyard:all_to_all", {output},
        [target, in, sent, received](const Named& named) -> Result<void> {
          TRY(named.run(calls::all_to_all(bytes(in), bytes(target.contiguous), sent, received)));
          target.copy_back();
          return ok();
        });
  }

  c10::intrusive_ptr<Work> alltoall(Tensors& outputs, Tensors& inputs,
                                    const c10d::AllToAllOptions&) override {
    expect_one_a_rank(outputs);
    expect_one_a_rank(inputs);
    const Tensor in = joined(inputs);
    const Tensor flat = flat_buffer_for(outputs);
    expect_one_type(in, flat);
    const auto sent = bytes_of(inputs);
    const Tensors out = outputs;
    return start(OpType::ALLTOALL, "trainyard:all_to_all", out,
                 [in, flat, sent, out](const Named& named) -> Result<void> {
                   TRY(named.run(calls::all_to_all(bytes(in), bytes(flat), sent, bytes_of(out))));
                   part(flat, out);
                   return ok();
                 });
  }

  c10::intrusive_ptr<Work> barrier(const c10d::BarrierOptions&) override {
    return start(OpType::BARRIER, "trainyard:barrier", {},
                 [](const Named& named) { return named.run(calls::barrier()); });
  }

  c10::intrusive_ptr<Work> send(Tensors& tensors, int peer, int tag) override {
    return channels_.send(only(tensors), peer, tag);
  }

  c10::intrusive_ptr<Work> recv(Tensors& tensors, int peer, int tag) override {
    return channels_.receive(only(tensors), peer, tag);
  }

  c10::intrusive_ptr<Work> recvAnysource(Tensors& tensors, int tag) override {
    return channels_.receive_from_any(only(tensors), tag);
  }

 private:
  // Equal blocks need no counts.
  static std::vector<size_t> uneven(std::vector<size_t> counts) {
    const bool even =
        std::adjacent_find(counts.begin(), counts.end(), std::not_equal_to<>()) == counts.end();
    return even ? std::vector<size_t>() : counts;
  }

  void expect_one_a_rank_(size_t tensors) const {
    TORCH_CHECK(tensors == size_t(getSize()), "trainyard: ", tensors, " tensors for ", getSize(),
                " ranks");
  }
  void expect_one_a_rank(const Tensors& tensors) const { expect_one_a_rank_(tensors.size()); }

  // Checks that the input matches this rank's part of the output.
  void expect_ours_among(const Tensor& in, const Tensors& out) const {
    const Tensor& ours = out.at(size_t(getRank()));
    expect_one_type(in, ours);
    TORCH_CHECK(in.numel() == ours.numel(), "trainyard: this rank's input has ", in.numel(),
                " elements, but its part of the output has ", ours.numel());
  }

  std::vector<size_t> row_bytes(const Tensor& tensor, const std::vector<int64_t>& splits) const {
    const int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
    if (splits.empty()) {
      TORCH_CHECK(rows % getSize() == 0, "trainyard: ", rows, " rows do not divide by ", getSize(),
                  " ranks");
      return std::vector<size_t>(size_t(getSize()), bytes_of(tensor) / size_t(getSize()));
    }
    expect_one_a_rank_(splits.size());
    TORCH_CHECK(std::accumulate(splits.begin(), splits.end(), int64_t{0}) == rows,
                "trainyard: the splits do not add up to the rows of the tensor");
    std::vector<size_t> counts;
    for (const int64_t split : splits)
      counts.push_back(rows == 0 ? 0 : bytes_of(tensor) / size_t(rows) * size_t(split));
    return counts;
  }

  c10::intrusive_ptr<Work> allreduce_of_sparse(const Tensors& tensors,
                                               const c10d::AllreduceOptions& options) {
    TORCH_CHECK(tensors[0].device().is_cpu() && options.reduceOp == ReduceOp::SUM,
                "trainyard: sparse tensors can only be summed, and in CPU memory");
    return start(OpType::ALLREDUCE, "trainyard:all_reduce_sparse", tensors,
                 [tensor = tensors[0]](const Named& named) { return sum_sparse(named, tensor); });
  }

  c10::intrusive_ptr<Work> reduce_scatter_of(OpType type, const Destination& target,
                                             const Tensor& in, const std::vector<size_t>& counts,
                                             const c10d::ReduceScatterOptions& options) {
    const ReduceOp op = options.reduceOp;
    expect_one_type(in, target.tensor);
    const auto reducing = reducing_or_bits(op, in);
    return start(type, "trainyard:reduce_scatter", {target.tensor},
                 [target, in, counts, op, reducing](const Named& named) -> Result<void> {
                   if (is_bitwise(op)) {
                     const Tensor all = in.clone();
                     TRY(combine_bits(named, all, op.op_));
                     size_t begin = named.group.rank() * size_t(target.tensor.numel());
                     if (!counts.empty())
                       begin = std::accumulate(counts.begin(), counts.begin() + named.group.rank(),
                                               size_t{0});
                     target.tensor.copy_(all.view({-1})
                                             .narrow(0, int64_t(begin), target.tensor.numel())
                                             .view(target.tensor.sizes()));
                     return ok();
                   }
                   TRY(named.run(calls::reduce_scatter(
                       buffer_view(in), buffer_view(target.contiguous), reducing, counts)));
                   target.copy_back();
                   return ok();
                 });
  }

  // Operations of a group end in order, so the last work completes after all others.
  template <class Start>
  c10::intrusive_ptr<Work> last_of(size_t operations, const Start& start_one) {
    TORCH_CHECK(operations > 0, "trainyard: no tensors");
    c10::intrusive_ptr<Work> last;
    for (size_t index = 0; index < operations; ++index) last = start_one(index);
    return last;
  }

  c10::intrusive_ptr<Work> start(OpType type, const char* title, Tensors result, Doing doing) {
    // Identifies the operation in errors: torch gives no names to tensors.
    std::string name = kind_of(result) + "operation " + std::to_string(++operations_);
    size_t size = 0;
    for (const Tensor& tensor : result) size += bytes_of(tensor);
    auto work =
        c10::make_intrusive<StartedWork>(getRank(), type, title, worker_, std::move(result));
    work->begin(
        work,
        [this, name = std::move(name), doing = std::move(doing)] {
          if (auto done = doing({*group_, name}); !done)
            throw std::runtime_error(text_of(done.error()));
        },
        size <= kSmallBytesMax ? Worker::Start::soon : Worker::Start::now);
    return work;
  }

  // With `alone`, no other thread of this process may use the store meanwhile.
  Result<std::unique_ptr<Group>> connect_at(const std::string& name, int rank, int size,
                                            bool alone) const {
    RendezvousOptions options;
    options.rank = rank;
    options.size = size;
    options.join_deadline = options.peer_timeout = settings_.timeout;
    options.address = settings_.connection.address;
    options.cancelled = [ending = ending_] { return ending->load(); };
    options.group.deterministic = settings_.connection.deterministic;
    options.group.plans = settings_.connection.plans;
    options.group.activity = settings_.connection.activity;
    options.secret = settings_.connection.secret;
    options.encrypt = settings_.connection.encrypt;
    options.sockets_per_peer = settings_.connection.sockets_per_peer.value_or(1);
    return rendezvous(store_.part(name, alone), std::move(options));
  }

  // Returns the text of an error. For a group of some of the ranks, it lists their global ranks.
  std::string text_of(const Error& error) const {
    std::string text = "trainyard: " + error.message;
    if (settings_.global_ranks.empty()) return text;
    text += " (this group's ranks 0..";
    text += std::to_string(getSize() - 1) + " are";
    for (const int64_t rank : settings_.global_ranks) text += " " + std::to_string(rank);
    return text + " of all)";
  }

  const Settings settings_;
  // Shared with the store and the groups, which read it while they wait; the last one frees it.
  const std::shared_ptr<std::atomic<bool>> ending_ = std::make_shared<std::atomic<bool>>(false);
  const GroupStore store_;
  std::atomic<uint64_t> operations_ = 0;
  std::unique_ptr<Group> group_;
  InPlaceRegistration in_place_;  // used by the worker's tasks only
  const std::shared_ptr<Worker> worker_ = new_worker();
  Channels channels_{Channels::Settings{
      getRank(), getSize(), settings_.timeout,
      [this](const std::string& key, int rank) { return connect_at(key, rank, 2, false); },
      [this](int to) { return store_.announce(getRank(), to); },
      [this](int64_t number) { return store_.sender(getRank(), number); }}};
};

c10::intrusive_ptr<Base> create(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                std::chrono::milliseconds timeout,
                                std::vector<int64_t> global_ranks) {
  const pybind11::gil_scoped_release free_for_others;
  auto connection = collectives::read_connection(capi::variable_of_process);
  if (!connection) throw std::runtime_error(connection.error().message);
  return c10::make_intrusive<TrainyardGroup>(
      store, rank, size,
      TrainyardGroup::Settings{timeout, *std::move(connection), std::move(global_ranks)});
}

void settle() {
  const pybind11::gil_scoped_release free_for_others;
  settle_all();
}

}  // namespace
}  // namespace trainyard::sdk

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("create", &trainyard::sdk::create, pybind11::arg("store"), pybind11::arg("rank"),
             pybind11::arg("size"), pybind11::arg("timeout"), pybind11::arg("global_ranks"));
  module.def("settle", &trainyard::sdk::settle);
}
