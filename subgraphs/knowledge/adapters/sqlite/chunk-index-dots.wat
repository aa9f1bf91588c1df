;; Source of the bytes in chunk-index-dots.ts; `wat2wasm chunk-index-dots.wat` of the WebAssembly Binary Toolkit makes them.
(module
  (memory (export "memory") 1)
  ;; Writes to `out` the dot product, an i32 each, of the i16 vector at `query` with `count` i8 vectors that lie one after another from
  ;; `vectors`. `length` is their number of components, a multiple of 16. The caller sees to it that no sum leaves 32 bits.
  (func (export "dots") (param $query i32) (param $vectors i32) (param $count i32) (param $length i32) (param $out i32)
    (local $sum v128) (local $at i32) (local $part v128) (local $q i32)
    (block $done
      (loop $each
        (br_if $done (i32.eqz (local.get $count)))
        (local.set $sum (v128.const i32x4 0 0 0 0))
        (local.set $at (i32.const 0))
        (loop $next
          (local.set $part (v128.load (i32.add (local.get $vectors) (local.get $at))))
          (local.set $q (i32.add (local.get $query) (i32.shl (local.get $at) (i32.const 1))))
          (local.set $sum (i32x4.add (local.get $sum) (i32x4.add
            (i32x4.dot_i16x8_s (i16x8.extend_low_i8x16_s (local.get $part)) (v128.load (local.get $q)))
            (i32x4.dot_i16x8_s (i16x8.extend_high_i8x16_s (local.get $part)) (v128.load offset=16 (local.get $q))))))
          (local.set $at (i32.add (local.get $at) (i32.const 16)))
          (br_if $next (i32.lt_u (local.get $at) (local.get $length))))
        (i32.store (local.get $out) (i32.add
          (i32.add (i32x4.extract_lane 0 (local.get $sum)) (i32x4.extract_lane 1 (local.get $sum)))
          (i32.add (i32x4.extract_lane 2 (local.get $sum)) (i32x4.extract_lane 3 (local.get $sum)))))
        (local.set $vectors (i32.add (local.get $vectors) (local.get $length)))
        (local.set $out (i32.add (local.get $out) (i32.const 4)))
        (local.set $count (i32.sub (local.get $count) (i32.const 1)))
        (br $each)))))
