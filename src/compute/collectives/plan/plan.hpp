// A Plan determines the steps of one rank in a collective operation before any byte moves.
//
// Every rank computes its own steps from the same few numbers, without communication. A plan
// consists of these numbers; its steps are computed one round at a time, when they are needed. A
// plan does no I/O: only run.cpp turns steps into I/O, and a test executes the steps of all ranks
// on one thread.
//
// Threads: pure functions. Lifetime: `blocks` outlives the plan.
// Errors: none; requirements are checked.
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
  // each rank sends everything to all others (or to the root, or the root to all)
  one_shot,
  direct,            // each rank reduces one piece, then sends it to all
  ring,              // pieces travel around the ring
  halving_doubling,  // pairs halve the range that they reduce, then double the range that they hold
  tree,              // binomial tree up, and down again
  // within the hosts, then between them, then within: several plans, see hierarchical()
  hierarchical
};

// Returns true if the operation reduces values; other operations only move them.
constexpr bool reduces(Operation operation) {
  return operation == Operation::allreduce || operation == Operation::reduce_scatter ||
         operation == Operation::reduce;
}

std::string_view to_string(Operation operation);
std::string_view to_string(Algorithm algorithm);
std::optional<Operation> operation_named(std::string_view name);
std::optional<Algorithm> algorithm_named(std::string_view name);

enum class Action : uint8_t {
  send,          // sends `range` to `peer`, or to all other ranks
  receive,       // receives `range` from `peer` and keeps it for a reduction of the same round
  receive_into,  // receives `range` from `peer` into the output
  reduce,        // reduces the own value of `range` with the oldest `operands` kept values
};

inline constexpr int kAllRanks = -1;

// The use that the receiver makes of a message.
enum class Use : uint8_t {
  copied,   // copies the elements into its output
  reduced,  // reduces them with others
  // reduces them, and may write the result over them, which the sender then uses
  reduced_in_place
};

// Sends never wait for each other; a reduction waits for its operands. At the end of a round all of
// its messages have arrived, while its sends may still be in progress. Ranges are never empty: both
// sides omit empty messages.
struct Step {
  Action action = Action::send;
  // sends and reductions: reads the own values from the caller's input, else from the output
  bool from_input = false;
  bool last = false;  // the last reduction of this range, which divides an average
  // reductions: earlier sends may still read `range`, which is written when they are done
  bool guarded = false;
  Use use = Use::copied;  // send
  // reductions: the number of received values. They are reduced in the order of their receives, and
  // the own value follows the first `peer` of them.
  uint16_t operands = 0;
  int peer = kAllRanks;
  Range range;
};

using Steps = std::vector<Step>;

struct Plan {
  Operation operation = Operation::barrier;
  Algorithm algorithm = Algorithm::direct;
  int rank = 0;
  int ranks = 1;
  size_t elements = 0;  // elements of the whole buffer
  int root = 0;         // broadcast, reduce, gather, scatter
  // Messages have at most this many elements, so that one is reduced while the next is sent. 0: no
  // limit.
  size_t chunk_elements = 0;
  // False in the first stage of a hierarchical reduction, which does not divide averages.
  bool finishes = true;
  // reduce_scatter, all_gather, gather, scatter: the block of each rank, by rank; in order, without
  // gaps. all_to_all: the block for each rank. Blocks may differ in size and be empty.
  std::span<const Range> blocks;
  // all_to_all: the block from each rank.
  std::span<const Range> received_blocks;
};

// Returns the number of rounds of a plan; zero if it moves nothing.
size_t rounds(const Plan& plan);
// Adds the steps of a round. Requires: round < rounds(plan).
void add_round(const Plan& plan, size_t round, Steps& steps);

// Returns a number that identifies a message among those of its operation between the same two
// ranks: its elements, and whether they are reduced or copied. Both ends compute it from their own
// step, so a plan that sends in a different order from the one in which it receives fails at its
// first message, and never gives a wrong sum. Requires: not the reducing step.
uint64_t message_number(const Plan& plan, const Step& step);

// Returns true when the algorithm implements the operation.
bool exists(Operation operation, Algorithm algorithm);
// Returns true when the first steps of the plan read the input of the caller. Otherwise the input
// must be copied into the output before.
bool reads_input(Operation operation, Algorithm algorithm);

// Returns piece `part` of `parts` pieces of `elements`; sizes differ by at most one.
Range piece(size_t elements, int part, int parts);

// One plan of a hierarchical operation: its ranks are indexes in `team`, its ranges count from
// `begin`.
struct Stage {
  Plan plan;
  std::vector<int> team;       // ranks of the members in the whole group
  size_t begin = 0;            // position of the plan's element 0 in the whole buffer
  std::vector<Range> storage;  // the memory of plan.blocks
};

// Returns the stages of a hierarchical allreduce. hosts[r] is the host of rank r: any number that
// ranks on one host share.
std::vector<Stage> hierarchical(int rank, std::span<const int> hosts, size_t elements,
                                size_t local_chunk_elements, Algorithm between,
                                size_t between_chunk_elements);

// An Expression is the order in which the values of one element are reduced: its parts from left to
// right, rounded once at the end. A leaf is the value of one rank.
struct Expression {
  int rank = 0;
  std::vector<Expression> parts;
};

// Returns the order that a reduction (allreduce, reduce_scatter, reduce) guarantees for `element`.
// It depends only on plan, number of ranks and element; plan.rank is ignored.
Expression expression(const Plan& plan, size_t element);
Expression hierarchical_expression(std::span<const int> hosts, size_t elements, Algorithm between,
                                   size_t element);

// The cost of a plan, by the formulas above the algorithms. Tests compare it with the steps.
struct Cost {
  size_t latencies = 0;      // messages that depend on each other
  size_t elements_sent = 0;  // by the rank that sends the most
  size_t elements_sent_by_all = 0;
  size_t elements_reduced = 0;  // received values, by the rank that reduces the most
};
Cost cost(const Plan& plan);

}  // namespace trainyard::collectives::plan
