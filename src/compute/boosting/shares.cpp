#include "boosting/shares.hpp"

#include <algorithm>

#include "base/bytes/fields.hpp"

namespace trainyard::boosting {
namespace {

template <class Side, class Share>
void fields(Side& side, Share& share) {
  side("rows", share.rows);
  side("columns", share.columns);
  side("is_sparse", share.is_sparse);
  side("has_groups", share.has_groups);
}

constexpr uint64_t kRowsMax = uint64_t{1} << 48;  // sums over hosts do not overflow

Error without_data(const std::string& host, const char* channel) {
  return invalid(std::string("channel ") + channel + ": host " + host +
                 " has no data: each host needs at least one row. Use at least as many objects as "
                 "hosts with ShardedByS3Key, or fewer hosts");
}

// Checks a host's share of a channel: it has rows, and if these are dense, they have as many
// features as the rows of the channel `train` on the first host.
Result<void> compare(const ChannelShare& share, const ChannelShare& first, const std::string& host,
                     const std::string& first_host, const char* channel) {
  if (share.rows == 0) return without_data(host, channel);
  if (share.columns > kColumnsMax || share.rows > kRowsMax)
    return corrupt("host " + host + " sent an invalid number of rows or columns");
  if (!share.is_sparse && share.columns != first.columns)
    return invalid(std::string("channel ") + channel + ": host " + host + " has rows of " +
                   std::to_string(share.columns) + " features, but the channel train on " +
                   first_host + " has rows of " + std::to_string(first.columns));
  return ok();
}

}  // namespace

ChannelShare share_of(const Table& table) {
  return {table.rows(), table.columns, table.is_sparse, !table.group_rows.empty()};
}

std::string encode(const HostShare& share) {
  FieldWriter writer;
  fields(writer, share.train);
  writer("stopped", share.stopped);
  writer("has_validation", share.has_validation);
  fields(writer, share.validation);
  return writer.bytes;
}

Result<HostShare> decode_share(const std::string& text) {
  FieldReader reader(text, "HostShare");
  HostShare share;
  fields(reader, share.train);
  reader("stopped", share.stopped);
  reader("has_validation", share.has_validation);
  fields(reader, share.validation);
  TRY(reader.finish());
  return share;
}

Result<Agreement> agree(const std::vector<HostShare>& shares,
                        const std::vector<std::string>& hosts) {
  Agreement agreement;
  const HostShare& first = shares.front();
  for (const HostShare& share : shares) agreement.stopped |= share.stopped;
  if (agreement.stopped) return agreement;
  for (size_t rank = 0; rank < shares.size(); ++rank) {
    const HostShare& share = shares[rank];
    TRY(compare(share.train, first.train, hosts[rank], hosts[0], "train"));
    if (share.has_validation)
      TRY(compare(share.validation, first.train, hosts[rank], hosts[0], "validation"));
    if (share.train.has_groups != first.train.has_groups)
      return invalid("channel train: rows have a qid on one of the hosts " + hosts[0] + " and " +
                     hosts[rank] + " only");
    agreement.rows += share.train.rows;
    agreement.columns =
        std::max({agreement.columns, share.train.columns, share.validation.columns});
  }
  return agreement;
}

}  // namespace trainyard::boosting
