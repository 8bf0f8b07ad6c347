# What happens in the boards of a small Redmine, through its own models.
#
#     bundle exec rails runner redmine_world.rb found|populate|change|truth|forums
#
# Runs in Redmine's own environment. The last line printed is JSON.

require 'json'

WORDS = %w[crawl redis forum thread lease bucket river stone kettle lantern marble violin].freeze
TITLES = ['How do I %s a %s?', '<%s> & %s: what\'s "right"?', '%s %s — ünïcode ✓ 中文', '2 %s for 1 %s'].freeze
PEOPLE = [%w[Alice Ash], %w[Bob Birch], %w[Chloé Cèdre], %w[Dmitri Dub], %w[小明 王]].freeze
PARTS = [
  '*bold* and more of 3 < 4 && 5 > 4 in ünïcode 中文 🙂',
  'bq. a quote',
  "<pre><code class=\"python\">\nfor x in range(3):\n    print('x')\n</code></pre>",
  'See "the page":https://example.org/7 too.',
  "* one\n* two"
].freeze

ActionMailer::Base.perform_deliveries = false
Setting.notified_events = []

# The boards with the people who write in them; `clock` goes on with each message.
class World
  def initialize(seed)
    @dice = Random.new(seed)
    @number = Message.count
    @clock = Message.maximum(:created_on) || (Time.now - 400 * 86_400)
    @people = User.where("login like 'member%'").order(:id).to_a
    @boards = Board.order(:id).to_a
  end

  def topic(replies)
    title = format(pick(TITLES), pick(WORDS), pick(WORDS))
    one = message(board: pick(@boards), subject: title)
    replies.times { reply(one) }
    one
  end

  def reply(topic)
    one = message(board: topic.board, subject: "RE: #{topic.subject}", parent: topic.reload)
    topic.update_columns(updated_on: one.created_on)
  end

  def pick(list) = list[@dice.rand(list.size)]

  private

  def message(**fields)
    @clock += 60 + @dice.rand(6000)
    one = Message.new(**fields, content: text)
    one.author = pick(@people)
    one.save!
    one.update_columns(created_on: @clock, updated_on: @clock)
    one
  end

  # Textile: paragraphs, a quote, code, a link, a list, signs that HTML escapes.
  def text
    @number += 1
    words = Array.new(5 + @dice.rand(55)) { pick(WORDS) }.join(' ')
    ["Number #{@number}: #{words}.", *PARTS.sample(@dice.rand(4), random: @dice)].join("\n\n")
  end
end

def found
  project = Project.new(name: 'Garden', identifier: 'garden', is_public: true)
  project.enabled_module_names = %w[boards issue_tracking news wiki]
  project.save!
  PEOPLE.each_with_index do |(first, last), number|
    user = User.new(firstname: first, lastname: last, mail: "m#{number}@example.com")
    user.login = "member#{number}"
    user.password = user.password_confirmation = 'long password 1'
    user.save!
  end
  [['Help', 'Ask here'], ['Open discussion', 'All else']].each do |name, description|
    Board.create!(project: project, name: name, description: description)
  end
end

def populate
  world = World.new(1)
  topics = Array.new(210) { |n| world.topic(n % 20 == 3 ? 30 : world.pick([0, 0, 1, 2, 3, 5, 8])) }
  topics[3, 3].each { |one| one.update_columns(sticky: 1) }
  topics[5, 4].each { |one| one.update_columns(locked: true) }
  Message.where.not(parent_id: nil).order(:id).to_a[10, 80].each_slice(6) { |some| some.first.destroy }
end

# A little of everything, on topics that were there before.
def change
  world = World.new(2)
  topics = Message.where(parent_id: nil, locked: false).order(:id).to_a
  8.times { |replies| world.topic(replies) }
  topics[8, 20].each { |one| world.reply(one) }
  topics[40, 10].each { |one| [one, *one.children.to_a.last(1)].each { |message| edit(message) } }
  topics[50, 10].each { |one| one.children.first&.destroy }
  topics[60, 3].each { |one| one.reload.destroy }
end

def edit(message)
  message.content += "\n\nEdited since."
  message.save!
end

# Messages as a guest may read them: the text of the markup that Redmine made, by another way than Trawl's.
def truth
  topics, comments = {}, {}
  Message.order(:id).each do |one|
    text = Nokogiri::HTML.fragment(Redmine::WikiFormatting.to_html('textile', one.content)).text.split.join(' ')
    told = { text: text, author: one.author.name, at: one.created_on.utc.strftime('%Y-%m-%d %H:%M') }
    if one.parent_id
      comments[one.id.to_s] = told.merge(topic_id: one.parent_id.to_s)
    else
      topics[one.id.to_s] = told.merge(forum_id: one.board_id.to_s, title: one.subject, replies: one.replies_count)
    end
  end
  { topics: topics, comments: comments }
end

def forums = Board.order(:id).map { |board| board.id.to_s }

told = send(ARGV.fetch(0))
puts (told.is_a?(Hash) || ARGV[0] == 'forums' ? told : nil).to_json
