import { type GraphQLObjectType, getNamedType, isEnumType, isObjectType, isScalarType, Kind, type SelectionSetNode } from 'graphql'
import type { SupergraphTypes } from './supergraph-types.ts'

/**
 * Whether the answer to `fetched` can be passed on unchanged as the answer to `asked`. True when both have the same
 * fields in the same order under the same names, without fragments, `@include` or `@skip`, and with only object types
 * and enums that have nothing inaccessible. Token streams ask this way, and then cost half as much.
 */
export function passesThrough(
  asked: SelectionSetNode,
  fetched: SelectionSetNode,
  parent: GraphQLObjectType,
  types: SupergraphTypes,
): boolean {
  return (
    asked.selections.length === fetched.selections.length &&
    asked.selections.every((field, index) => {
      const other = fetched.selections[index]
      if (field.kind !== Kind.FIELD || other?.kind !== Kind.FIELD) return false
      if (field.directives?.length || other.directives?.length) return false
      if (field.name.value !== other.name.value || field.alias?.value !== other.alias?.value) return false
      if (field.name.value === '__typename') return true
      const definition = parent.getFields()[field.name.value]
      if (!definition) return false
      const type = getNamedType(definition.type)
      if (isScalarType(type)) return true
      if (isEnumType(type)) return type.getValues().length === types.countValues(type.name)
      return (
        isObjectType(type) &&
        field.selectionSet !== undefined &&
        other.selectionSet !== undefined &&
        passesThrough(field.selectionSet, other.selectionSet, type, types)
      )
    })
  )
}
