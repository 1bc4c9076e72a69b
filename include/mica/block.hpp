// SPDX-License-Identifier: Apache-2.0
//
// The room block: the parts of a layer.
#pragma once

#include "mica/block/altup.hpp"
#include "mica/block/attention.hpp"
#include "mica/block/attention_config.hpp"
#include "mica/block/concept.hpp"
#include "mica/block/delta_net.hpp"
#include "mica/block/dense_feed_forward.hpp"
#include "mica/block/encoder_input.hpp"
#include "mica/block/experts.hpp"
#include "mica/block/experts_beside_dense.hpp"
#include "mica/block/laurel.hpp"
#include "mica/block/layer.hpp"
#include "mica/block/linear.hpp"
#include "mica/block/lists.hpp"
#include "mica/block/mtp_input.hpp"
#include "mica/block/norm.hpp"
#include "mica/block/norm_kind.hpp"
#include "mica/block/output_scale.hpp"
#include "mica/block/per_layer.hpp"
#include "mica/block/residual_norm.hpp"
#include "mica/block/rope.hpp"
#include "mica/block/scratch.hpp"
#include "mica/block/state_plan.hpp"
#include "mica/block/tensor_binder.hpp"
