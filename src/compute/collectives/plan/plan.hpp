// What one rank does in a collective operation, step by step, decided before any byte moves.
//
// Every rank computes its own steps from the same few numbers, so that nobody has to be asked. A plan is a
// value of those numbers; its steps are computed a round at a time, when they are needed. A plan touches
// nothing: run.cpp alone turns steps into I/O, and a test walks the steps of all ranks in one thread.
//
// Threads: pure functions. Lifetime: `blocks` outlives the plan.
// Errors: none; what is Required is checked.
// Units: ranges count elements of the caller's buffer, not bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace trainyard::collectives::plan {

struct Range {
  size_t begin = 0;
  size_t end = 0;
  size_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

enum class Operation : uint8_t {
  allreduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  gather,
  scatter,
  all_to_all,
  barrier
};

enum class Algorithm : uint8_t {
  one_shot,          // everyone sends all to everyone (or all to the root, or the root to all)
  direct,            // everyone combines one piece of all, then hands it to everyone
  ring,              // pieces walk around the circle
  halving_doubling,  // pairs halve what they combine, then double what they know
  tree,              // binomial tree up, and down again
  hierarchical       // within the hosts, then between them, then within: several plans, see hierarchical()
};

std::string_view to_string(Operation operation);
std::string_view to_string(Algorithm algorithm);
std::optional<Operation> operation_named(std::string_view name);
std::optional<Algorithm> algorithm_named(std::string_view name);

enum class Action : uint8_t {
  send,     // `range` goes to `peer`, or to everyone else
  receive,  // `range` of `peer` comes and is kept aside for a fold of the same round
  take,     // `range` of `peer` comes to where it belongs
  fold,     // `range` = our value combined with the oldest `operands` that were kept aside
};

inline constexpr int everyone = -1;

// What the receiver of a send does with it.
enum class Use : uint8_t {
  taken,   // the elements as they are
  folded,  // it combines them with others
  lent     // the same, and since we take the result, it may write it over ours at once
};

// Sends never wait for each other; a fold waits for its operands; at the end of a round all that it receives
// and takes has come, while what it sends may still be under way. Ranges are never empty: what would move
// nothing is left out by both sides.
struct Step {
  Action action = Action::send;
  bool from_input =
      false;              // send, fold: our own values are read from the caller's input, else from the output
  bool last = false;      // fold: nothing is added to this range afterwards, so an average is divided here
  bool guarded = false;   // fold: our sends may still be read from `range`; it is written when they have left
  Use use = Use::taken;   // send
  uint16_t operands = 0;  // fold: how many received values; they are combined in the order of their receives,
  int peer = everyone;    // and ours comes after the first `peer` of them
  Range range;
};

using Steps = std::vector<Step>;

struct Plan {
  Operation operation = Operation::barrier;
  Algorithm algorithm = Algorithm::direct;
  int rank = 0;
  int ranks = 1;
  size_t elements = 0;  // of the whole buffer
  int root = 0;         // broadcast, reduce, gather, scatter
  // Messages are cut to this many elements, so that one is combined while the next moves. 0: not cut.
  size_t chunk_elements = 0;
  // False in the first part of a hierarchical reduction: averages are not divided yet.
  bool finishes = true;
  // reduce_scatter, all_gather, gather, scatter: what belongs to each rank, by rank; in order, without gaps.
  // all_to_all: what we bring for each rank. Blocks may differ in size and be empty.
  std::span<const Range> blocks;
  // all_to_all: where what each rank brings us belongs.
  std::span<const Range> received_blocks;
};

// How many rounds a plan has; zero where nothing moves.
size_t rounds(const Plan& plan);
// Adds the steps of a round. Requires: round < rounds(plan).
void add_round(const Plan& plan, size_t round, Steps& steps);

// What tells a message from the others of its operation between the same two ranks: which elements it carries, and
// whether they are combined or taken. Both ends compute it from their own step, so a plan that sends in another
// order than it receives is found out by its first message, and adds nothing wrong. Requires: not a fold.
uint64_t message_number(const Plan& plan, const Step& step);

// Whether there is such a plan: not every algorithm serves every operation.
bool exists(Operation operation, Algorithm algorithm);
// Whether the plan's first steps read the caller's input where it lies. Else the input must be copied into the
// output before.
bool reads_input(Operation operation, Algorithm algorithm);

// The `part`th of `parts` pieces of `elements`: sizes differ by at most one.
Range piece(size_t elements, int part, int parts);

// One plan of a hierarchical operation: its ranks are places in `team`, its ranges count from `begin`.
struct Stage {
  Plan plan;
  std::vector<int> team;       // the members' ranks in the whole group
  size_t begin = 0;            // where in the whole buffer the plan's element 0 lies
  std::vector<Range> storage;  // what plan.blocks points to
};

// hosts[r] is the host of rank r, any number that ranks on one host share. For allreduce only.
std::vector<Stage> hierarchical(int rank, std::span<const int> hosts, size_t elements,
                                size_t local_chunk_elements, Algorithm between,
                                size_t between_chunk_elements);

// In which order the ranks' values of one element are combined: a fold of its parts, from left to right,
// rounded once at its end. A leaf is one rank's value.
struct Expression {
  int rank = 0;
  std::vector<Expression> parts;
};

// What a reduction (allreduce, reduce_scatter, reduce) promises about `element`: a function of plan, number of
// ranks and element alone. The plan's own rank means nothing here.
Expression expression(const Plan& plan, size_t element);
Expression hierarchical_expression(std::span<const int> hosts, size_t elements, Algorithm between,
                                   size_t element);

// What a plan costs, as the comments above the algorithms say; tests compare with the steps themselves.
struct Cost {
  size_t latencies = 0;      // messages that can only follow each other
  size_t elements_sent = 0;  // by the rank that sends most
  size_t elements_sent_by_all = 0;
  size_t elements_folded = 0;  // received values combined by the rank that combines most
};
Cost cost(const Plan& plan);

}  // namespace trainyard::collectives::plan
