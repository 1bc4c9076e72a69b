// SPDX-License-Identifier: Apache-2.0
//
// The list of all blocks of mica.
#pragma once

#include "mica/base/type_list.hpp"
#include "mica/block/altup.hpp"
#include "mica/block/attention.hpp"
#include "mica/block/delta_net.hpp"
#include "mica/block/dense_feed_forward.hpp"
#include "mica/block/encoder_input.hpp"
#include "mica/block/experts.hpp"
#include "mica/block/experts_beside_dense.hpp"
#include "mica/block/laurel.hpp"
#include "mica/block/mtp_input.hpp"
#include "mica/block/output_scale.hpp"
#include "mica/block/per_layer.hpp"
#include "mica/block/residual_norm.hpp"

namespace mica::block {

/// The blocks that models may have, if the program adds no block of its own.
using All = TypeList<Attention, DeltaNet, DenseFeedForward, Experts, ExpertsBesideDense, LayerInputs,
                     PerLayerEmbedding, AltUp, Laurel, OutputScale, MtpInput, EncoderInput, ResidualNorm>;

}  // namespace mica::block
